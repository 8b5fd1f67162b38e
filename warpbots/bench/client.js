// The browser's side of a live bench: draws what arrives, by ../view/browser/picture.js, and sends what the user does.
// The same module serves a widget in a notebook (`render`) and a page of its own (`open`).

// --- curves ----------------------------------------------------------------------------------------------------------

const HUES = ["#c2410c", "#1d4ed8", "#15803d", "#7e22ce", "#0f766e", "#a16207"];

class Curves {
    constructor(canvas, names, legend) {
        Object.assign(this, {canvas, names, past: []});
        legend.replaceChildren(...names.map((name, i) => {
            const item = document.createElement("span");
            item.textContent = name;
            item.style.color = HUES[i % HUES.length];
            return item;
        }));
    }
    note(time, values) {
        const last = this.past.at(-1);
        if (last && time < last[0]) this.past = this.past.filter(([t]) => t <= time);
        if (!this.past.length || time > this.past.at(-1)[0]) this.past.push([time, values]);
        while (this.past.length > 2 && this.past[1][0] < time - 10) this.past.shift();
    }
    draw() {
        const {canvas, past} = this, pen = canvas.getContext("2d"), scale = devicePixelRatio || 1;
        const width = canvas.clientWidth, height = canvas.clientHeight;
        canvas.width = width * scale;
        canvas.height = height * scale;
        pen.scale(scale, scale);
        pen.font = "11px sans-serif";
        if (past.length < 2) return;
        const all = past.flatMap(([, values]) => values).filter(Number.isFinite);
        let low = Math.min(...all), high = Math.max(...all);
        if (!(high > low)) { low -= 1; high += 1; }
        const start = past[0][0], end = Math.max(past.at(-1)[0], start + 1e-6), left = 58, bottom = height - 16;
        const X = t => left + (width - left - 8) * (t - start) / (end - start);
        const Y = v => bottom - (bottom - 8) * (v - low) / (high - low);
        pen.fillStyle = "#667";
        pen.textAlign = "right";
        const text = v => (Math.abs(v) < 1e-6 * (high - low) ? 0 : v).toPrecision(3);
        pen.fillText(text(high), left - 6, 13);
        pen.fillText(text(low), left - 6, bottom);
        pen.textAlign = "left";
        pen.fillText(`${start.toFixed(1)} s`, left, height - 3);
        pen.textAlign = "right";
        pen.fillText(`${end.toFixed(1)} s`, width - 8, height - 3);
        pen.strokeStyle = "#ccd";
        pen.strokeRect(left, 8, width - left - 8, bottom - 8);
        this.names.forEach((_, i) => {
            pen.strokeStyle = HUES[i % HUES.length];
            pen.beginPath();
            for (const [t, values] of past) pen.lineTo(X(t), Y(values[i]));
            pen.stroke();
        });
    }
}

// --- the bench -------------------------------------------------------------------------------------------------------

const FRAME = `
<div class="wb-stage">
  <canvas class="wb-view" tabindex="0" aria-label="The simulation; drag a body to pull it, drag beside it to turn the view"></canvas>
  <div class="wb-clock"></div><div class="wb-message" role="status"></div>
</div>
<div class="wb-panel"></div>
<div class="wb-bar">
  <button data-do="play" title="Play or pause (space)"></button>
  <button data-do="step" title="One control interval (.)">Step</button>
  <button data-do="reset" title="Back to the start (backspace)">Reset</button>
  <button data-do="record" title="Record the motion">Record</button>
  <button data-do="arrows" title="Arrows: where displaced matter or a push lowers the loss">&#8711; position</button>
  <button data-do="stiffness" title="Colours: blue where stiffer matter lowers the loss">&#8711; stiffness</button>
  <button data-do="home" title="The first view (h)">View</button>
  <label>Speed <select data-do="speed"><option value="0.1">1/10</option><option value="0.25">1/4</option>
  <option value="0.5">1/2</option><option value="1" selected>1</option><option value="2">2</option></select></label>
  <label class="wb-time" hidden title="A moment of the last recording, from which the simulation goes on">Recorded
  <input type="range" data-do="seek" min="0" step="any" aria-label="Time of the recording"></label>
</div>
<div class="wb-legend"></div><canvas class="wb-curves"></canvas>`;

export function bench(root, channel) {
    root.classList.add("wb-bench");
    root.innerHTML = FRAME;
    const find = name => root.querySelector(name), canvas = find(".wb-view");
    const buttons = Object.fromEntries([...root.querySelectorAll("[data-do]")].map(b => [b.dataset.do, b]));
    const picture = new Picture(canvas), sliders = {control: [], factor: {}};
    const playing = {on: false, since: 0};
    let curves, frame, dirty = false, stopped = false, said = "";
    const say = (type, more = {}) => channel.send({type, ...more});

    function arrived(message, buffers) {
        if (message.type === "scene") {
            picture.begin(message, buffers[0]);
            curves = new Curves(find(".wb-curves"), message.curves, find(".wb-legend"));
            buttons.stiffness.hidden = !message.stiffness;
            panel(message);
        } else if (message.type === "frame") {
            frame = message;
            const floats = view => new Float32Array(view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength));
            const [vertices, position, rotation, arrows] = [0, 2, 3, 4].map(k => floats(buffers[k]));
            picture.update({vertices, colors: buffers[1], position, rotation, arrows});
            curves.note(message.time, message.curves);
            dirty = true;
        } else if (message.type === "missed") {
            pointer.missed();
        }
    }

    function slider(parent, name, title, range, start, said) {
        const row = document.createElement("label"), text = document.createElement("span");
        const value = document.createElement("output"), input = document.createElement("input");
        Object.assign(input, {type: "range", ...range, value: start, ariaLabel: name});
        text.textContent = name;
        row.title = title;
        row.append(text, value, input);
        parent.append(row);
        input.oninput = () => said(+input.value);
        return {input, value, moved: 0, row};
    }

    function panel(scene) {
        const parent = find(".wb-panel");
        const group = name => {
            const made = document.createElement("fieldset"), legend = document.createElement("legend");
            legend.textContent = name;
            made.append(legend);
            parent.append(made);
            return made;
        };
        parent.replaceChildren();
        if (scene.channels.length) {
            const controls = group("Controls");
            sliders.control = scene.channels.map((c, k) => {
                const made = slider(controls, c.name, c.kind, {min: -1, max: 1, step: 0.01}, 0, value => {
                    made.moved = performance.now();
                    made.value.textContent = value.toFixed(2);
                    say("control", {channel: k, value});
                });
                made.row.ondblclick = () => { made.input.value = 0; made.input.oninput(); };
                return made;
            });
        }
        if (scene.parameters.length) {
            const parameters = group("Parameters");
            for (const p of scene.parameters) {
                const made = slider(parameters, p.name.replaceAll("_", " "), `${p.doc} [${p.unit}]`,
                                    {min: -2, max: 2, step: 0.02}, 0, value => {
                    made.moved = performance.now();
                    say("factor", {name: p.name, value: 2 ** value});
                });
                made.unit = p.unit;
                made.typical = p.value;
                made.row.ondblclick = () => { made.input.value = 0; made.input.oninput(); };
                sliders.factor[p.name] = made;
            }
        }
        parent.hidden = !parent.children.length;
        root.classList.toggle("wb-narrow", parent.hidden);
    }

    function follow() {  // sliders show what the simulation has, except while they are moved
        const now = performance.now();
        frame.control.forEach((value, k) => {
            const made = sliders.control[k];
            if (now - made.moved < 500) return;
            made.input.value = value;
            made.value.textContent = value.toFixed(2);
        });
        for (const [name, factor] of Object.entries(frame.factors)) {
            const made = sliders.factor[name];
            made.value.textContent = `${(factor * made.typical).toPrecision(3)} ${made.unit === "1" ? "" : made.unit}`;
            if (now - made.moved > 500) made.input.value = Math.log2(factor);
        }
        if (now - playing.since > 500) playing.on = frame.playing;
        buttons.play.textContent = playing.on ? "❚❚" : "▶";
        buttons.play.ariaLabel = playing.on ? "Pause" : "Play";
        buttons.record.textContent = frame.recording === null ? "Record" : `Stop ${frame.recording.toFixed(1)} s`;
        buttons.record.classList.toggle("wb-on", frame.recording !== null);
        find(".wb-time").hidden = frame.recorded === null;
        if (frame.recorded !== null) {
            const [start, end] = frame.recorded;
            buttons.seek.max = end - start;
            if (now - (playing.sought || 0) > 500) buttons.seek.value = frame.time - start;
        }
        const slow = frame.playing && frame.ratio !== null && frame.ratio < 0.9 * frame.speed;
        find(".wb-clock").textContent = `${frame.time.toFixed(2)} s` +
            (slow ? `   ${frame.ratio.toPrecision(2)} of real time` : "");
        if (said !== frame.message) find(".wb-message").textContent = said = frame.message;
    }

    function paint() {
        if (stopped) return;
        requestAnimationFrame(paint);
        const width = Math.round(canvas.clientWidth * (devicePixelRatio || 1));
        const height = Math.round(canvas.clientHeight * (devicePixelRatio || 1));
        const resized = width && height && (canvas.width !== width || canvas.height !== height);
        if (resized) Object.assign(canvas, {width, height});
        if (!frame || (!dirty && !resized)) return;
        const fresh = dirty;
        dirty = false;
        picture.draw(frame.pull);
        root.dataset.frames = +(root.dataset.frames || 0) + 1;
        if (fresh && frame !== paint.last) {
            paint.last = frame;
            follow();
            curves.draw();
            say("drawn");
        }
    }

    // --- mouse, finger and keys

    const ray = event => {
        const box = canvas.getBoundingClientRect();
        return picture.camera.ray(2 * (event.clientX - box.x) / box.width - 1,
                                  1 - 2 * (event.clientY - box.y) / box.height, picture.aspect);
    };
    const pointer = steer(canvas, picture, () => { dirty = true; }, {
        takes(event) {
            const box = canvas.getBoundingClientRect(), scale = canvas.width / box.width;
            if (!frame || !picture.bodyAt((event.clientX - box.x) * scale, (event.clientY - box.y) * scale)) return false;
            say("grab", ray(event));
            return true;
        },
        moves: event => say("drag", ray(event)),
        releases: () => say("release"),
    });
    const act = {
        play: () => {  // at once: a second click means the opposite, even before the first one is answered
            playing.on = !playing.on;
            playing.since = performance.now();
            say(playing.on ? "play" : "pause");
        },
        step: () => say("step"),
        reset: () => say("reset"),
        record: () => say(frame?.recording == null ? "record" : "stop"),
        arrows: () => say("gradient", {stiffness: false}),
        stiffness: () => say("gradient", {stiffness: true}),
        home: () => { picture.camera?.home(); dirty = true; },
    };
    for (const [name, button] of Object.entries(buttons)) if (act[name]) button.onclick = act[name];
    buttons.speed.onchange = () => say("speed", {value: +buttons.speed.value});
    buttons.seek.oninput = () => {
        playing.sought = performance.now();
        playing.on = false;
        say("seek", {value: +buttons.seek.value});
    };
    canvas.onkeydown = event => {
        const name = {" ": "play", ".": "step", Backspace: "reset", r: "record", h: "home"}[event.key];
        if (!name) return;
        act[name]();
        event.preventDefault();
        event.stopPropagation();  // a notebook has keys of its own
    };

    channel.listen(arrived);
    requestAnimationFrame(paint);
    return () => { stopped = true; };
}

// --- in a notebook ---------------------------------------------------------------------------------------------------

const views = new Map();  // what each view does with a message

function initialize({model}) {  // here, since a listener of `render` ends when its output is replaced
    model.on("msg:custom", (message, buffers) => views.get(message.to)?.(message.what, buffers.map(asBytes)));
}

function render({model, el}) {
    const name = `view ${Math.random()}`, root = document.createElement("div");
    el.append(root);
    const end = bench(root, {send: what => model.send({from: name, what}), listen: f => views.set(name, f)});
    model.send({from: name, what: {type: "join"}});
    const leave = () => {
        model.send({from: name, what: {type: "leave"}});
        views.delete(name);
        end();
        root.remove();
    };
    let out = false, left = false;
    const until = performance.now() + 10e3;  // a view may be made before its place in the page is there
    const attempt = () => {
        out = takeOut(root, leave, () => model.send({from: name, what: {type: "taken out"}}));
        if (!out && !left && performance.now() < until) setTimeout(attempt, 100);
    };
    setTimeout(attempt);
    return () => {
        left = !out;
        if (left) leave();
    };
}

// A stored notebook shows a widget as an error once its kernel is gone. In JupyterLab the view therefore moves beside
// the output of its cell. The kernel then replaces the output by a picture, which is stored, and hidden while the view
// is there. When the cell runs again or is removed, the output goes, and the view with it.
function takeOut(root, leave, done) {
    const output = root.closest(".jp-OutputArea-child"), area = output?.parentElement;
    if (!area?.classList.contains("jp-OutputArea") || !area.parentElement) return false;
    area.parentElement.insertBefore(root, area.nextSibling);
    const outputs = () => [...area.querySelectorAll(":scope > .jp-OutputArea-child")], place = outputs().indexOf(output);
    const watch = new MutationObserver(() => {
        const still = outputs()[place];
        if (!still || !area.isConnected && !document.contains(root)) { watch.disconnect(); leave(); }
        else still.style.display = "none";
    });
    output.style.display = "none";
    watch.observe(area, {childList: true});
    done();
    return true;
}

const asBytes = view => new Uint8Array(view.buffer, view.byteOffset, view.byteLength);

// --- on a page of its own: messages are a length, JSON, and buffers behind one another ------------------------------

export function open(root, address) {
    const socket = new WebSocket(address);
    socket.binaryType = "arraybuffer";
    let hear = () => {};
    socket.onmessage = ({data}) => {
        const length = new DataView(data).getUint32(0, true);
        const {what, sizes} = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, length)));
        let at = 4 + length;
        hear(what, sizes.map(size => new Uint8Array(data, (at += size) - size, size)));
    };
    socket.onclose = () => { root.querySelector(".wb-message").textContent = "The simulation has ended."; };
    return bench(root, {
        send: what => { if (socket.readyState === 1) socket.send(JSON.stringify(what)); },
        listen: f => { hear = f; },
    });
}

export default {initialize, render};

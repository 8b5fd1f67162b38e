// Plays a motion: by mouse, finger and keys, without a server and without a network.

const SPEEDS = [1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2, 4];
const SHORTEST = 1.5;  // a motion that is over sooner than in this time begins slower [s]
const LINGER = 0.6;  // time for which the end is seen before the motion begins again [s]
const MARGIN = 40;  // how far outside of the view a label may belong that is moved to its border [pixels]
const ICONS = {
    play: "M7 4 L19 12 L7 20 Z",
    pause: "M6 4 H10 V20 H6 Z M14 4 H18 V20 H14 Z",
    loop: "M17 2 L22 6.5 L17 11 V8 H7 V12 H4 V5 H17 Z M7 22 L2 17.5 L7 13 V16 H17 V12 H20 V19 H7 Z",
    view: "M12 3 L22 12 H19 V21 H14 V15 H10 V21 H5 V12 H2 Z",
    full: "M3 3 H10 V6 H6 V10 H3 Z M14 3 H21 V10 H18 V6 H14 Z M3 14 H6 V18 H10 V21 H3 Z M18 14 H21 V21 H14 V18 H18 Z",
};
const PLAYER = `
<div class="wb-stage">
  <canvas class="wb-view" tabindex="0" role="img"></canvas>
  <div class="wb-ruler" aria-hidden="true"></div>
  <p class="wb-note"></p>
  <p class="wb-fault" role="alert"></p>
</div>
<div class="wb-bar" role="toolbar" aria-label="Player">
  <button type="button" data-do="play"></button>
  <input type="range" data-do="seek" min="0" step="any" value="0" aria-label="Time">
  <output class="wb-clock" aria-hidden="true"></output>
  <select data-do="speed" aria-label="Speed" title="Speed (&lt; and &gt;)">
    ${SPEEDS.map(s => `<option value="${s}">${s < 1 ? `1/${1 / s}` : s} ×</option>`).join("")}
  </select>
  <button type="button" data-do="loop" aria-label="Repeat" title="Repeat (l)"></button>
  <button type="button" data-do="view" aria-label="First view" title="First view (v)"></button>
  <button type="button" data-do="full" aria-label="Full screen" title="Full screen (f)"></button>
</div>`;

// --- the motion ------------------------------------------------------------------------------------------------------

async function unpacked(text) {  // base64 of a stream that zlib has compressed
    const bytes = Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
}

class Motion {  // the arrays are described in motion_data.py
    constructor(bytes) {
        const length = new DataView(bytes.buffer).getUint32(0, true);
        this.scene = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
        let at = 4 + length;
        const take = count => bytes.slice(at, at += count);
        const {frames, vertices, meshes, geometry} = this.scene;
        this.geometry = take(geometry);
        const low = take(frames * 3 * vertices), high = take(frames * 3 * vertices);
        this.places = new Uint16Array(frames * 3 * vertices);
        for (let i = 0; i < low.length; i++)  // differences from frame to frame
            this.places[i] = low[i] + 256 * high[i] + (i < 3 * vertices ? 0 : this.places[i - 3 * vertices]);
        this.colors = take(frames * 4 * vertices);
        for (let i = 4 * vertices; i < this.colors.length; i++) this.colors[i] += this.colors[i - 4 * vertices];
        this.position = new Float32Array(take(frames * 12 * meshes).buffer);
        this.rotation = new Float32Array(take(frames * 36 * meshes).buffer);
        this.shown = {arrows: null, vertices: new Float32Array(3 * vertices), position: new Float32Array(3 * meshes),
                      rotation: new Float32Array(9 * meshes)};
    }

    get end() { return this.scene.times.at(-1); }

    frame(time) {  // the last frame that is not after a time
        let k = 0;
        while (k + 1 < this.scene.frames && this.scene.times[k + 1] <= time + 1e-9) k++;
        return k;
    }

    at(time) {  // between two frames, places are interpolated
        const {times, frames, vertices, meshes, lower, step} = this.scene, {shown} = this;
        const k = this.frame(time), next = Math.min(k + 1, frames - 1);
        const s = next > k ? Math.min(1, Math.max(0, (time - times[k]) / (times[next] - times[k]))) : 0;
        const mixed = (values, size, i) => (1 - s) * values[k * size + i] + s * values[next * size + i];
        for (let i = 0; i < 3 * vertices; i++)
            shown.vertices[i] = lower[i % 3] + step[i % 3] * mixed(this.places, 3 * vertices, i);
        for (let i = 0; i < 3 * meshes; i++) shown.position[i] = mixed(this.position, 3 * meshes, i);
        for (let m = 0; m < meshes; m++) {  // columns of a rotation stay of unit length and at right angles
            const column = j => [0, 1, 2].map(i => mixed(this.rotation, 9 * meshes, 9 * m + 3 * i + j));
            const a = unit(column(0)), b = column(1), second = unit(add(b, a, -dot(a, b))), third = cross(a, second);
            [a, second, third].forEach((c, j) => c.forEach((value, i) => { shown.rotation[9 * m + 3 * i + j] = value; }));
        }
        shown.colors = this.colors.subarray(4 * vertices * k, 4 * vertices * (k + 1));
        return shown;
    }
}

// --- the player ------------------------------------------------------------------------------------------------------

async function player(root, text) {
    root.classList.add("wb-player");
    root.setAttribute("role", "group");
    root.innerHTML = PLAYER;
    const find = name => root.querySelector(name), canvas = find(".wb-view");
    const control = Object.fromEntries([...root.querySelectorAll("[data-do]")].map(e => [e.dataset.do, e]));
    let motion, picture;
    try {
        motion = new Motion(await unpacked(text));
        picture = new Picture(canvas);
        picture.begin(motion.scene, motion.geometry);
    } catch (fault) {
        find(".wb-fault").textContent = fault.message;
        return;
    }
    const {scene} = motion;
    const state = {time: 0, playing: false, loop: true, speed: 1, since: null, lingered: 0, dirty: true, asked: false};
    root.setAttribute("aria-label", `Motion of ${scene.name}`);
    canvas.setAttribute("aria-label", `${scene.name}, ${scene.dim}D, ${motion.end.toFixed(2)} seconds. Drag to turn the view.`);
    find(".wb-note").textContent = scene.note;
    control.seek.max = motion.end;
    const placed = (text, kind) => {
        const made = document.createElement("span");
        made.textContent = text;
        made.className = kind;
        find(".wb-ruler").append(made);
        return made;
    };
    const labels = scene.ticks.map(tick => placed(tick.text, "wb-number"));
    const goals = scene.goals.map((_, k) => placed(k ? "" : "goal", "wb-goal"));

    function icon(button, name) {
        if (button.dataset.icon === name) return;
        button.dataset.icon = name;
        button.innerHTML = `<svg viewBox="0 0 24 24" aria-hidden="true"><path d="${ICONS[name]}"/></svg>`;
    }

    function ask() {  // for a picture; none is drawn while nothing changes
        state.dirty = true;
        if (state.asked) return;
        state.asked = true;
        requestAnimationFrame(paint);
    }

    function paint(now) {
        state.asked = false;
        if (state.playing) advance(now);
        const scale = devicePixelRatio || 1, width = Math.round(canvas.clientWidth * scale);
        const height = Math.round(canvas.clientHeight * scale);
        if (width && height && (canvas.width !== width || canvas.height !== height)) Object.assign(canvas, {width, height});
        if (state.dirty || state.playing) {
            picture.update(motion.at(state.time));
            picture.draw();
            ruler();
            mark();
            show();
            root.dataset.frames = +(root.dataset.frames || 0) + 1;
        }
        state.dirty = false;
        if (state.playing) ask();
    }

    function advance(now) {
        const passed = state.since === null ? 0 : Math.min((now - state.since) / 1000, 0.25);  // not what a hidden page missed
        state.since = now;
        if (state.time < motion.end) {
            state.time = Math.min(motion.end, state.time + passed * state.speed);
            state.lingered = 0;
        } else if (!state.loop) {
            pause();
        } else if ((state.lingered += passed) > LINGER) {
            state.time = 0;
        }
    }

    function mark() {  // the points that are to be reached, in front of everything
        goals.forEach((element, k) => {
            const [x, y] = picture.camera.seen(scene.goals[k], canvas.clientWidth, canvas.clientHeight);
            element.style.transform = `translate(${x.toFixed(1)}px, ${y.toFixed(1)}px)`;
        });
    }

    function ruler() {  // labels that would lie over an earlier one, or outside, are left out
        const width = canvas.clientWidth, height = canvas.clientHeight, taken = [];
        labels.map((label, i) => [label, scene.ticks[i]]).reverse().forEach(([label, tick]) => {  // those with units first
            const [at, y] = picture.camera.seen(tick.at, width, height), half = 3.4 * tick.text.length + 4;
            const x = Math.min(Math.max(at, half), width - half);
            const free = taken.every(([u, v, w]) => Math.abs(x - u) > half + w || Math.abs(y - v) > 14);
            label.hidden = !free || Math.abs(at - x) > MARGIN || y < 8 || y > height - 8;
            if (label.hidden) return;
            taken.push([x, y, half]);
            label.style.transform = `translate(-50%, -50%) translate(${x.toFixed(1)}px, ${y.toFixed(1)}px)`;
        });
    }

    function show() {
        const digits = motion.end < 0.1 ? 3 : 2, text = `${state.time.toFixed(digits)} / ${motion.end.toFixed(digits)} s`;
        control.seek.value = state.time;
        control.seek.setAttribute("aria-valuetext", `${state.time.toFixed(digits)} of ${motion.end.toFixed(digits)} seconds`);
        control.seek.style.setProperty("--done", `${100 * state.time / motion.end}%`);
        find(".wb-clock").textContent = text;
        icon(control.play, state.playing ? "pause" : "play");
        control.play.ariaLabel = state.playing ? "Pause" : "Play";
        control.play.title = `${control.play.ariaLabel} (space)`;
        control.loop.ariaPressed = String(state.loop);
        control.speed.value = String(state.speed);
        control.full.ariaPressed = String(document.fullscreenElement === root);
    }

    function play() {
        if (state.time >= motion.end) state.time = 0;
        Object.assign(state, {playing: true, since: null, lingered: 0});
        ask();
    }

    function pause() {
        state.playing = false;
        ask();
    }

    function seek(time) {
        state.time = Math.min(motion.end, Math.max(0, time));
        pause();
    }

    function faster(by) {
        state.speed = SPEEDS[Math.min(SPEEDS.length - 1, Math.max(0, SPEEDS.indexOf(state.speed) + by))];
        ask();
    }

    const by = frames => {
        const k = motion.frame(state.time), between = state.time > scene.times[k] + 1e-9;
        seek(scene.times[Math.min(scene.frames - 1, Math.max(0, k + frames + (between && frames < 0 ? 1 : 0)))]);
    };
    const act = {
        play: () => state.playing ? pause() : play(),
        loop: () => { state.loop = !state.loop; ask(); },
        view: () => { picture.camera.home(); ask(); },
        full: () => document.fullscreenElement ? document.exitFullscreen() : root.requestFullscreen(),
    };
    for (const [name, what] of Object.entries(act)) {
        icon(control[name], name);
        control[name].onclick = what;
        control[name].onmousedown = event => event.preventDefault();  // keys stay with the player after a click
    }
    control.full.hidden = !document.fullscreenEnabled;
    control.seek.oninput = () => seek(+control.seek.value);
    control.speed.onchange = () => { state.speed = +control.speed.value; ask(); };
    const keys = {
        " ": act.play, k: act.play, l: act.loop, v: act.view, f: act.full, "<": () => faster(-1), ">": () => faster(1),
        ArrowLeft: () => by(-1), ArrowRight: () => by(1), Home: () => seek(0), End: () => seek(motion.end),
    };
    addEventListener("keydown", event => {
        const what = keys[event.key], element = event.target;
        if (!what || event.ctrlKey || event.altKey || event.metaKey) return;
        if (event.key === " " && element instanceof HTMLButtonElement) return;  // which it presses
        if (element instanceof HTMLSelectElement && event.key.length > 1) return;  // in which it chooses
        if (element instanceof HTMLSelectElement && event.key === " ") return;
        event.preventDefault();
        what();
    });
    document.addEventListener("fullscreenchange", ask);
    new ResizeObserver(ask).observe(canvas);
    steer(canvas, picture, ask);
    state.speed = SPEEDS.findLast(speed => speed <= 1 && motion.end / speed >= SHORTEST) ?? SPEEDS[0];
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) pause();
    else play();
}

player(document.getElementById("player"), document.getElementById("motion").textContent.trim());

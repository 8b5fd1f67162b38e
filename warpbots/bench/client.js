// The browser's side of a live bench: draws what arrives, and sends what the user does.
// The same module serves a widget in a notebook (`render`) and a page of its own (`open`).

const MESH_VERTEX = `#version 300 es
layout(location = 0) in vec3 position;
layout(location = 1) in vec3 normal;
layout(location = 2) in vec4 color;
uniform mat4 view, model;
uniform float floorHeight;
uniform bool shadow;
out vec3 place, up;
out vec4 paint;
void main() {
    vec4 world = model * vec4(position, 1.0);
    if (shadow) world.z = floorHeight;
    place = world.xyz;
    up = mat3(model) * normal;
    paint = color;
    gl_Position = view * world;
}`;
const MESH_FRAGMENT = `#version 300 es
precision highp float;
in vec3 place, up;
in vec4 paint;
uniform vec3 light, eye;
uniform vec4 color;
uniform bool flat_, shadow, mask;
out vec4 pixel;
void main() {
    if (paint.a * color.a < 0.99) discard;
    if (shadow) { pixel = vec4(0.0, 0.0, 0.0, 0.16); return; }
    if (mask) { pixel = vec4(color.rgb, 1.0); return; }
    vec3 n = flat_ ? cross(dFdx(place), dFdy(place)) : up;
    n = normalize(n);
    if (dot(n, eye - place) < 0.0) n = -n;
    float shade = 0.50 + 0.58 * (0.5 + 0.5 * dot(n, light));
    pixel = vec4(min(paint.rgb * color.rgb * shade, 1.0), 1.0);
}`;
const BALL_VERTEX = `#version 300 es
layout(location = 0) in vec3 position;
layout(location = 1) in float radius;
layout(location = 2) in vec4 color;
uniform mat4 view;
uniform float scale, floorHeight;
uniform bool shadow;
out vec4 paint;
void main() {
    vec3 place = position;
    if (shadow) place.z = floorHeight;
    gl_Position = view * vec4(place, 1.0);
    gl_PointSize = 2.0 * radius * scale / gl_Position.w;
    paint = color;
}`;
const BALL_FRAGMENT = `#version 300 es
precision highp float;
in vec4 paint;
uniform vec3 right, upward, toward, light;
uniform bool disc, mask;
out vec4 pixel;
void main() {
    vec2 at = 2.0 * gl_PointCoord - 1.0;
    float rest = 1.0 - dot(at, at);
    if (paint.a < 0.5 || rest < 0.0) discard;
    if (mask) { pixel = vec4(1.0); return; }
    vec3 n = at.x * right - at.y * upward + sqrt(rest) * toward;
    float shade = disc ? 1.0 : 0.50 + 0.58 * (0.5 + 0.5 * dot(n, light));
    pixel = vec4(min(paint.rgb * shade, 1.0), 1.0);
}`;
const LINE_VERTEX = `#version 300 es
layout(location = 0) in vec3 position;
uniform mat4 view;
void main() { gl_Position = view * vec4(position, 1.0); }`;
const LINE_FRAGMENT = `#version 300 es
precision highp float;
uniform vec4 color;
out vec4 pixel;
void main() { pixel = color; }`;

// --- vectors and matrices, column by column --------------------------------------------------------------------------

const sub = (a, b) => a.map((x, i) => x - b[i]);
const add = (a, b, s = 1) => a.map((x, i) => x + s * b[i]);
const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const unit = a => a.map(x => x / Math.hypot(...a));
const IDENTITY = new Float32Array([1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]);

function product(a, b) {
    const c = new Float32Array(16);
    for (let j = 0; j < 4; j++) for (let i = 0; i < 4; i++) for (let k = 0; k < 4; k++)
        c[4 * j + i] += a[4 * k + i] * b[4 * j + k];
    return c;
}

function pose(position, rotation) {  // rows of `rotation` follow one another
    const m = new Float32Array(16);
    for (let i = 0; i < 3; i++) for (let j = 0; j < 3; j++) m[4 * j + i] = rotation[3 * i + j];
    m.set(position, 12);
    m[15] = 1;
    return m;
}

// --- the camera ------------------------------------------------------------------------------------------------------

class Camera {
    constructor(given, floor) {
        this.start = given;
        this.lowest = floor ? 0.02 : -1.5;  // a view from below a floor shows nothing
        this.home();
    }
    home() {
        const {eye, center, field} = this.start, arm = sub(eye, center);
        this.center = [...center];
        this.distance = Math.hypot(...arm);
        this.azimuth = Math.atan2(arm[1], arm[0]);
        this.elevation = Math.asin(arm[2] / this.distance);
        this.tangent = Math.tan(field * Math.PI / 360);
    }
    get toward() {
        const c = Math.cos(this.elevation);
        return [c * Math.cos(this.azimuth), c * Math.sin(this.azimuth), Math.sin(this.elevation)];
    }
    get right() { return [-Math.sin(this.azimuth), Math.cos(this.azimuth), 0]; }
    get up() { return cross(this.toward, this.right); }
    get eye() { return add(this.center, this.toward, this.distance); }
    matrix(aspect) {
        const [r, u, t] = [this.right, this.up, this.toward], e = this.eye;
        const look = new Float32Array([r[0], u[0], t[0], 0, r[1], u[1], t[1], 0, r[2], u[2], t[2], 0,
                                       -dot(r, e), -dot(u, e), -dot(t, e), 1]);
        const near = this.distance / 50, far = this.distance * 50, f = 1 / this.tangent;
        return product(new Float32Array([f / aspect, 0, 0, 0, 0, f, 0, 0, 0, 0, (far + near) / (near - far), -1,
                                         0, 0, 2 * far * near / (near - far), 0]), look);
    }
    ray(x, y, aspect) {  // x and y from -1 to 1
        const across = add(add(this.toward.map(v => -v), this.right, x * this.tangent * aspect),
                           this.up, y * this.tangent);
        return {origin: this.eye, direction: unit(across), forward: this.toward.map(v => -v)};
    }
    turn(dx, dy) {
        this.azimuth -= dx;
        this.elevation = Math.min(1.5, Math.max(this.lowest, this.elevation + dy));
    }
    pan(dx, dy) {  // in heights of the view
        const size = 2 * this.distance * this.tangent;
        this.center = add(add(this.center, this.right, -dx * size), this.up, dy * size);
    }
    zoom(factor) { this.distance *= factor; }
}

// --- what is drawn ---------------------------------------------------------------------------------------------------

class Picture {
    constructor(canvas) {
        this.canvas = canvas;
        this.gl = canvas.getContext("webgl2", {antialias: true, stencil: true, preserveDrawingBuffer: true});
        if (!this.gl) throw new Error("this browser has no WebGL 2, which the bench needs to draw");
    }

    begin(scene, geometry) {
        const gl = this.gl;
        this.scene = scene;
        this.camera = new Camera(scene.camera, scene.floor !== null);
        this.mesh = this.program(MESH_VERTEX, MESH_FRAGMENT);
        this.ball = this.program(BALL_VERTEX, BALL_FRAGMENT);
        this.line = this.program(LINE_VERTEX, LINE_FRAGMENT);
        let at = 0;
        const take = (kind, count) => {
            const found = new kind(geometry.buffer.slice(geometry.byteOffset + at, geometry.byteOffset + at + 4 * count));
            at += 4 * count;
            return found;
        };
        this.radius = this.store(take(Float32Array, scene.particles), gl.ARRAY_BUFFER);
        this.grid = this.store(take(Float32Array, 3 * scene.grid), gl.ARRAY_BUFFER);
        this.soft = scene.soft.map(mesh => {
            const faces = take(Uint32Array, 3 * mesh.faces);
            return {...mesh, indices: faces, buffer: this.store(faces, gl.ELEMENT_ARRAY_BUFFER)};
        });
        this.rigid = scene.rigid.map(mesh => mesh && {
            ...mesh, place: this.store(take(Float32Array, 3 * mesh.vertices), gl.ARRAY_BUFFER),
            normals: this.store(take(Float32Array, 3 * mesh.vertices), gl.ARRAY_BUFFER),
            buffer: this.store(take(Uint32Array, 3 * mesh.faces), gl.ELEMENT_ARRAY_BUFFER),
        });
        this.vertices = gl.createBuffer();
        this.normals = gl.createBuffer();
        this.colors = gl.createBuffer();
        this.ends = gl.createBuffer();
    }

    program(vertex, fragment) {
        const gl = this.gl, made = gl.createProgram();
        for (const [kind, source] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
            const shader = gl.createShader(kind);
            gl.shaderSource(shader, source);
            gl.compileShader(shader);
            if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
            gl.attachShader(made, shader);
        }
        gl.linkProgram(made);
        const places = {};
        for (let i = 0; i < gl.getProgramParameter(made, gl.ACTIVE_UNIFORMS); i++) {
            const name = gl.getActiveUniform(made, i).name;
            places[name] = gl.getUniformLocation(made, name);
        }
        return {made, places};
    }

    store(values, target) {
        const gl = this.gl, buffer = gl.createBuffer();
        gl.bindBuffer(target, buffer);
        gl.bufferData(target, values, gl.STATIC_DRAW);
        return buffer;
    }

    update(buffers) {
        const gl = this.gl, [vertices, colors, position, rotation, arrows] = buffers;
        const floats = view => new Float32Array(view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength));
        this.x = floats(vertices);
        this.count = this.x.length / 3;
        this.first = this.count - this.scene.particles;  // of the particles
        const fill = (buffer, data) => {
            gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
            gl.bufferData(gl.ARRAY_BUFFER, data, gl.DYNAMIC_DRAW);
        };
        fill(this.vertices, this.x);
        fill(this.colors, colors);
        if (this.soft.some(mesh => !mesh.flat)) fill(this.normals, this.smooth());
        const [p, R] = [floats(position), floats(rotation)];
        this.poses = this.rigid.map((_, k) => pose(p.subarray(3 * k, 3 * k + 3), R.subarray(9 * k, 9 * k + 9)));
        this.arrows = floats(arrows);
    }

    smooth() {
        const x = this.x, n = new Float32Array(x.length);
        for (const mesh of this.soft) {
            if (mesh.flat) continue;
            const f = mesh.indices;
            for (let i = 0; i < f.length; i += 3) {
                const a = 3 * f[i], b = 3 * f[i + 1], c = 3 * f[i + 2];
                const ux = x[b] - x[a], uy = x[b + 1] - x[a + 1], uz = x[b + 2] - x[a + 2];
                const vx = x[c] - x[a], vy = x[c + 1] - x[a + 1], vz = x[c + 2] - x[a + 2];
                const nx = uy * vz - uz * vy, ny = uz * vx - ux * vz, nz = ux * vy - uy * vx;
                for (const k of [a, b, c]) { n[k] += nx; n[k + 1] += ny; n[k + 2] += nz; }
            }
        }
        return n;
    }

    get aspect() { return this.canvas.width / this.canvas.height; }

    draw(pull, mask = false) {
        if (!this.poses) return;
        const gl = this.gl, {scene, camera} = this, view = camera.matrix(this.aspect);
        gl.viewport(0, 0, this.canvas.width, this.canvas.height);
        gl.clearColor(...(mask ? [0, 0, 0] : scene.paper), 1);
        gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT | gl.STENCIL_BUFFER_BIT);
        gl.enable(gl.DEPTH_TEST);
        this.obstacles = this.rigid.length - scene.obstacles;
        this.bodies(view, false, mask);
        if (mask) return;
        if (scene.floor !== null && scene.dim === 3) {
            gl.enable(gl.BLEND);
            gl.blendFunc(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA);
            this.lines(view, this.grid, scene.grid, [...scene.edge, 0.45]);
            gl.enable(gl.STENCIL_TEST);  // one shadow at every pixel
            gl.stencilFunc(gl.EQUAL, 0, 255);
            gl.stencilOp(gl.KEEP, gl.KEEP, gl.INCR);
            gl.depthMask(false);
            this.bodies(view, true, false);
            gl.depthMask(true);
            gl.disable(gl.STENCIL_TEST);
            gl.disable(gl.BLEND);
        }
        gl.disable(gl.DEPTH_TEST);
        if (this.arrows.length) this.segments(view, this.heads(this.arrows), [0.05, 0.45, 0.25, 1]);
        if (pull) this.segments(view, new Float32Array(pull.flat()), [0.85, 0.3, 0.1, 1]);
    }

    bodies(view, shadow, mask) {
        const gl = this.gl, {scene, camera} = this;
        const height = shadow ? scene.floor + 0.0015 * this.camera.distance : 0;
        gl.useProgram(this.mesh.made);
        let u = this.mesh.places;
        gl.uniformMatrix4fv(u.view, false, view);
        gl.uniform3fv(u.light, scene.light);
        gl.uniform3fv(u.eye, camera.eye);
        gl.uniform1i(u.shadow, shadow);
        gl.uniform1i(u.mask, mask);
        gl.uniform1f(u.floorHeight, height);
        gl.uniformMatrix4fv(u.model, false, IDENTITY);
        gl.uniform4f(u.color, 1, 1, 1, 1);
        this.attribute(0, this.vertices, 3, gl.FLOAT);
        this.attribute(2, this.colors, 4, gl.UNSIGNED_BYTE);
        for (const mesh of this.soft) {
            if (mesh.flat) { gl.disableVertexAttribArray(1); gl.vertexAttrib3f(1, 0, 0, 1); }
            else this.attribute(1, this.normals, 3, gl.FLOAT);
            gl.uniform1i(u.flat_, mesh.flat);
            this.cull(mesh);
            gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, mesh.buffer);
            gl.drawElements(gl.TRIANGLES, 3 * mesh.faces, gl.UNSIGNED_INT, 0);
        }
        gl.disableVertexAttribArray(2);
        gl.vertexAttrib4f(2, 1, 1, 1, 1);
        this.rigid.forEach((mesh, k) => {
            const still = k >= this.obstacles;
            if (!mesh || (shadow && still)) return;
            gl.uniform1i(u.flat_, mesh.flat);
            this.cull(mesh);
            gl.uniform4f(u.color, ...(!mask ? mesh.color : mesh.held ? [1, 1, 1] : [0, 0, 0]), 1);
            gl.uniformMatrix4fv(u.model, false, this.poses[k]);
            this.attribute(0, mesh.place, 3, gl.FLOAT);
            this.attribute(1, mesh.normals, 3, gl.FLOAT);
            gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, mesh.buffer);
            gl.drawElements(gl.TRIANGLES, 3 * mesh.faces, gl.UNSIGNED_INT, 0);
        });
        gl.disable(gl.CULL_FACE);
        if (!scene.particles || shadow) return;
        gl.useProgram(this.ball.made);
        u = this.ball.places;
        gl.uniformMatrix4fv(u.view, false, view);
        gl.uniform1f(u.scale, this.canvas.height / (2 * camera.tangent));
        gl.uniform1i(u.shadow, false);
        gl.uniform1i(u.disc, scene.dim === 2);
        gl.uniform1i(u.mask, mask);
        gl.uniform3fv(u.light, scene.light);
        gl.uniform3fv(u.right, camera.right);
        gl.uniform3fv(u.upward, camera.up);
        gl.uniform3fv(u.toward, camera.toward);
        this.attribute(0, this.vertices, 3, gl.FLOAT, 12 * this.first);
        this.attribute(1, this.radius, 1, gl.FLOAT);
        this.attribute(2, this.colors, 4, gl.UNSIGNED_BYTE, 4 * this.first);
        gl.drawArrays(gl.POINTS, 0, scene.particles);
    }

    cull(mesh) { mesh.double ? this.gl.disable(this.gl.CULL_FACE) : this.gl.enable(this.gl.CULL_FACE); }

    attribute(index, buffer, size, kind, offset = 0) {
        const gl = this.gl;
        gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
        gl.enableVertexAttribArray(index);
        gl.vertexAttribPointer(index, size, kind, kind === gl.UNSIGNED_BYTE, 0, offset);
    }

    lines(view, buffer, count, color, kind = this.gl.LINES) {
        const gl = this.gl;
        gl.useProgram(this.line.made);
        gl.uniformMatrix4fv(this.line.places.view, false, view);
        gl.uniform4fv(this.line.places.color, color);
        for (const index of [1, 2]) gl.disableVertexAttribArray(index);
        this.attribute(0, buffer, 3, gl.FLOAT);
        gl.drawArrays(kind, 0, count);
    }

    segments(view, ends, color) {  // ribbons that lie parallel to the screen, since lines are one pixel wide
        const gl = this.gl, {distance, tangent, toward} = this.camera, made = [];
        const half = 2.6 * distance * tangent / this.canvas.height * (devicePixelRatio || 1);
        for (let i = 0; i < ends.length; i += 6) {
            const a = [...ends.subarray(i, i + 3)], b = [...ends.subarray(i + 3, i + 6)], side = cross(sub(b, a), toward);
            const length = Math.hypot(...side);
            if (length < 1e-9) continue;
            const s = half / length;
            const corners = [add(a, side, s), add(a, side, -s), add(b, side, s), add(b, side, -s)];
            for (const k of [0, 1, 2, 2, 1, 3]) made.push(...corners[k]);
        }
        gl.bindBuffer(gl.ARRAY_BUFFER, this.ends);
        gl.bufferData(gl.ARRAY_BUFFER, new Float32Array(made), gl.DYNAMIC_DRAW);
        this.lines(view, this.ends, made.length / 3, color, gl.TRIANGLES);
    }

    heads(ends) {  // shafts and heads of arrows, which lie parallel to the screen
        const made = [], forward = this.camera.toward;
        for (let i = 0; i < ends.length; i += 6) {
            const a = [...ends.subarray(i, i + 3)], b = [...ends.subarray(i + 3, i + 6)], along = sub(b, a);
            const length = Math.hypot(...along);
            made.push(...a, ...b);
            if (length < 1e-9) continue;
            const side = cross(along, forward);
            for (const s of [0.18, -0.18]) made.push(...b, ...add(add(b, along, -0.3), side, s));
        }
        return new Float32Array(made);
    }

    bodyAt(x, y) {  // whether a body, or an obstacle that can be dragged, is seen at a pixel
        this.draw(null, true);
        const found = new Uint8Array(4), gl = this.gl;
        gl.readPixels(Math.round(x), Math.round(this.canvas.height - y), 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, found);
        return found[0] > 127;
    }
}

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
        if (last && time < last[0]) this.past = [];
        if (!last || time > last[0]) this.past.push([time, values]);
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
</div>
<div class="wb-legend"></div><canvas class="wb-curves"></canvas>`;

export function bench(root, channel) {
    root.classList.add("wb-bench");
    root.innerHTML = FRAME;
    const find = name => root.querySelector(name), canvas = find(".wb-view");
    const buttons = Object.fromEntries([...root.querySelectorAll("[data-do]")].map(b => [b.dataset.do, b]));
    const picture = new Picture(canvas), sliders = {control: [], factor: {}};
    const playing = {on: false, since: 0};
    let curves, frame, dirty = false, stopped = false, held = null, said = "";
    const say = (type, more = {}) => channel.send({type, ...more});

    function arrived(message, buffers) {
        if (message.type === "scene") {
            picture.begin(message, buffers[0]);
            curves = new Curves(find(".wb-curves"), message.curves, find(".wb-legend"));
            buttons.stiffness.hidden = !message.stiffness;
            panel(message);
        } else if (message.type === "frame") {
            frame = message;
            picture.update(buffers);
            curves.note(message.time, message.curves);
            dirty = true;
        } else if (message.type === "missed" && held?.kind === "pull") {
            held.kind = "turn";
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
    const fingers = new Map();
    canvas.onpointerdown = event => {
        if (!frame) return;
        canvas.focus({preventScroll: true});
        canvas.setPointerCapture(event.pointerId);
        fingers.set(event.pointerId, event);
        const box = canvas.getBoundingClientRect(), scale = canvas.width / box.width;
        const onBody = event.button === 0 && !event.shiftKey && fingers.size === 1 &&
            picture.bodyAt((event.clientX - box.x) * scale, (event.clientY - box.y) * scale);
        dirty = true;
        if (held?.kind === "pull") say("release");
        held = {x: event.clientX, y: event.clientY, kind: onBody ? "pull" : event.button || event.shiftKey ? "pan" : "turn"};
        if (fingers.size > 1) held.kind = "pinch";
        if (onBody) say("grab", ray(event));
        event.preventDefault();
    };
    canvas.onpointermove = event => {
        if (!held || !fingers.has(event.pointerId)) return;
        const before = [...fingers.values()];
        fingers.set(event.pointerId, event);
        const dx = event.clientX - held.x, dy = event.clientY - held.y, height = canvas.clientHeight;
        if (held.kind === "pull") say("drag", ray(event));
        if (held.kind === "turn") picture.camera.turn(4 * dx / height, 4 * dy / height);
        if (held.kind === "pan") picture.camera.pan(dx / height, dy / height);
        if (held.kind === "pinch" && before.length === 2) {
            const apart = ([a, b]) => Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY);
            picture.camera.zoom(apart(before) / Math.max(apart([...fingers.values()]), 1));
        }
        Object.assign(held, {x: event.clientX, y: event.clientY});
        dirty = true;
    };
    canvas.onpointerup = canvas.onpointercancel = event => {
        fingers.delete(event.pointerId);
        if (held?.kind === "pull") say("release");
        held = null;
    };
    canvas.oncontextmenu = event => event.preventDefault();
    canvas.addEventListener("wheel", event => {
        picture.camera?.zoom(Math.exp(0.001 * event.deltaY));
        dirty = true;
        event.preventDefault();
    }, {passive: false});
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

// Draws a scene in a browser, as films do: for the player and for the live bench.

// --- what is drawn ---------------------------------------------------------------------------------------------------

class Picture {
    constructor(canvas) {
        this.canvas = canvas;
        this.gl = canvas.getContext("webgl2", {antialias: true, alpha: false, preserveDrawingBuffer: true});
        if (!this.gl) throw new Error("This browser has no WebGL 2, by which the scene would be drawn.");
    }

    begin(scene, geometry) {
        const gl = this.gl;
        this.scene = scene;
        this.camera = new Camera(scene.camera, scene.floor !== null);
        this.mesh = this.program(MESH_VERTEX, MESH_FRAGMENT);
        this.ball = this.program(BALL_VERTEX, BALL_FRAGMENT);
        this.line = this.program(LINE_VERTEX, LINE_FRAGMENT);
        this.blur = this.program(BLUR_VERTEX, BLUR_FRAGMENT);
        this.shade = this.program(SHADOW_VERTEX, SHADOW_FRAGMENT);
        this.covers = [this.layer(), this.layer()];
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
        this.rigid = scene.rigid.map(mesh => {
            if (!mesh) return null;
            const place = take(Float32Array, 3 * mesh.vertices);
            let radius = 0;
            for (let i = 0; i < place.length; i += 3) radius = Math.max(radius, Math.hypot(...place.subarray(i, i + 3)));
            return {
                ...mesh, radius, place: this.store(place, gl.ARRAY_BUFFER),
                normals: this.store(take(Float32Array, 3 * mesh.vertices), gl.ARRAY_BUFFER),
                buffer: this.store(take(Uint32Array, 3 * mesh.faces), gl.ELEMENT_ARRAY_BUFFER),
            };
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

    layer() {  // a picture that only later pictures see
        const gl = this.gl, texture = gl.createTexture(), frame = gl.createFramebuffer();
        gl.bindTexture(gl.TEXTURE_2D, texture);
        gl.texImage2D(gl.TEXTURE_2D, 0, gl.R8, CELLS, CELLS, 0, gl.RED, gl.UNSIGNED_BYTE, null);
        gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.LINEAR);
        for (const side of [gl.TEXTURE_WRAP_S, gl.TEXTURE_WRAP_T]) gl.texParameteri(gl.TEXTURE_2D, side, gl.CLAMP_TO_EDGE);
        gl.bindFramebuffer(gl.FRAMEBUFFER, frame);
        gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.TEXTURE_2D, texture, 0);
        gl.bindFramebuffer(gl.FRAMEBUFFER, null);
        return {texture, frame};
    }

    store(values, target) {
        const gl = this.gl, buffer = gl.createBuffer();
        gl.bindBuffer(target, buffer);
        gl.bufferData(target, values, gl.STATIC_DRAW);
        return buffer;
    }

    update({vertices, colors, position, rotation, arrows}) {
        const gl = this.gl;
        this.x = vertices;
        this.count = this.x.length / 3;
        this.first = this.count - this.scene.particles;  // of the particles
        const fill = (buffer, data) => {
            gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
            gl.bufferData(gl.ARRAY_BUFFER, data, gl.DYNAMIC_DRAW);
        };
        fill(this.vertices, this.x);
        fill(this.colors, colors);
        this.seen = colors;
        if (this.soft.some(mesh => !mesh.flat)) fill(this.normals, this.smooth());
        this.poses = this.rigid.map((_, k) =>
            pose(position.subarray(3 * k, 3 * k + 3), rotation.subarray(9 * k, 9 * k + 9)));
        this.arrows = arrows;
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

    draw(pull = null, mask = false) {
        if (!this.poses) return;
        const gl = this.gl, {scene, camera} = this, shaded = scene.floor !== null && scene.dim === 3 && !mask;
        camera.fit(this.aspect);
        const view = camera.matrix(this.aspect);
        this.obstacles = this.rigid.length - scene.obstacles;
        const above = shaded && this.cover();
        gl.viewport(0, 0, this.canvas.width, this.canvas.height);
        gl.clearColor(...(mask ? [0, 0, 0] : scene.paper), 1);
        gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
        gl.enable(gl.DEPTH_TEST);
        this.bodies(view, mask ? "mask" : "picture", this.canvas.height / (2 * camera.tangent));
        if (mask) return;
        if (scene.grid) {
            gl.enable(gl.BLEND);
            gl.blendFunc(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA);
            gl.depthMask(false);
            this.lines(view, this.grid, scene.grid, [...scene.edge, 0.55]);
            if (shaded) this.shadow(view, above);
            gl.depthMask(true);
            gl.disable(gl.BLEND);
        }
        gl.disable(gl.DEPTH_TEST);
        for (const line of scene.lines)
            if (this.seen[4 * line.first + 3]) this.segments(view, this.along(line), [...line.color, 1], line.width);
        if (this.arrows?.length) this.segments(view, this.heads(this.arrows), [0.05, 0.45, 0.25, 1]);
        if (pull) this.segments(view, new Float32Array(pull.flat()), [0.85, 0.3, 0.1, 1]);
    }

    cover() {  // draws what covers the floor, seen from above, and blurs it; returns the view from above
        const gl = this.gl, {scene, x} = this, lower = [Infinity, Infinity], upper = [-Infinity, -Infinity];
        const widen = (i, value, radius) => {
            lower[i] = Math.min(lower[i], value - radius);
            upper[i] = Math.max(upper[i], value + radius);
        };
        for (let i = 0; i < x.length; i += 3) { widen(0, x[i], 0); widen(1, x[i + 1], 0); }
        for (let k = 0; k < this.obstacles; k++) {
            if (this.rigid[k]) for (const i of [0, 1]) widen(i, this.poses[k][12 + i], this.rigid[k].radius);
        }
        const extent = Math.max(upper[0] - lower[0], upper[1] - lower[1], 0);
        const half = Math.max(CELLS * scene.shade.cell, extent * CELLS / (CELLS - 16)) / 2;
        const middle = lower.map((low, i) => Number.isFinite(low) ? (low + upper[i]) / 2 : 0);
        const above = new Float32Array([1 / half, 0, 0, 0, 0, 1 / half, 0, 0, 0, 0, 0, 0,
                                        -middle[0] / half, -middle[1] / half, 0, 1]);
        gl.viewport(0, 0, CELLS, CELLS);
        gl.disable(gl.DEPTH_TEST);
        gl.bindFramebuffer(gl.FRAMEBUFFER, this.covers[0].frame);
        gl.clearColor(0, 0, 0, 1);
        gl.clear(gl.COLOR_BUFFER_BIT);
        this.bodies(above, "shadow", CELLS / (2 * half));
        gl.useProgram(this.blur.made);
        for (const [from, to, along] of [[0, 1, [1 / CELLS, 0]], [1, 0, [0, 1 / CELLS]]]) {
            gl.bindFramebuffer(gl.FRAMEBUFFER, this.covers[to].frame);
            gl.bindTexture(gl.TEXTURE_2D, this.covers[from].texture);
            gl.uniform2fv(this.blur.places.along, along);
            gl.drawArrays(gl.TRIANGLES, 0, 3);
        }
        gl.bindFramebuffer(gl.FRAMEBUFFER, null);
        this.shaded = [...middle.map(m => m - half), ...middle.map(m => m + half)];
        return above;
    }

    shadow(view, above) {  // on the part of the floor that is drawn; a higher one would be seen beside its place
        const gl = this.gl, {scene} = this, height = scene.floor;
        const [x0, y0] = [0, 1].map(i => Math.max(scene.ground[i], this.shaded[i]));
        const [x1, y1] = [2, 3].map(i => Math.min(scene.ground[i], this.shaded[i]));
        if (x0 >= x1 || y0 >= y1) return;
        gl.bindBuffer(gl.ARRAY_BUFFER, this.ends);
        const corners = [[x0, y0], [x1, y0], [x0, y1], [x1, y1]];
        gl.bufferData(gl.ARRAY_BUFFER, new Float32Array(corners.flatMap(c => [...c, height])), gl.DYNAMIC_DRAW);
        gl.useProgram(this.shade.made);
        gl.uniformMatrix4fv(this.shade.places.view, false, view);
        gl.uniformMatrix4fv(this.shade.places.above, false, above);
        gl.uniform1f(this.shade.places.darkness, scene.shade.darkness);
        gl.bindTexture(gl.TEXTURE_2D, this.covers[0].texture);
        for (const index of [1, 2]) gl.disableVertexAttribArray(index);
        this.attribute(0, this.ends, 3, gl.FLOAT);
        gl.enable(gl.POLYGON_OFFSET_FILL);
        gl.polygonOffset(-2, -4);
        gl.drawArrays(gl.TRIANGLE_STRIP, 0, 4);
        gl.disable(gl.POLYGON_OFFSET_FILL);
    }

    // Draws bodies, and obstacles unless it is for their shadow. A mask is white where a body can be held.
    bodies(view, purpose, scale) {
        const gl = this.gl, {scene, camera} = this, plain = purpose !== "picture";
        gl.useProgram(this.mesh.made);
        let u = this.mesh.places;
        gl.uniformMatrix4fv(u.view, false, view);
        gl.uniform3fv(u.light, scene.light);
        gl.uniform3fv(u.eye, camera.eye);
        gl.uniform1i(u.mask, plain);
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
            if (!mesh || (purpose === "shadow" && k >= this.obstacles)) return;
            const held = purpose === "shadow" || mesh.held;
            gl.uniform1i(u.flat_, mesh.flat);
            this.cull(mesh);
            gl.uniform4f(u.color, ...(!plain ? mesh.color : held ? [1, 1, 1] : [0, 0, 0]), 1);
            gl.uniformMatrix4fv(u.model, false, this.poses[k]);
            this.attribute(0, mesh.place, 3, gl.FLOAT);
            this.attribute(1, mesh.normals, 3, gl.FLOAT);
            gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, mesh.buffer);
            gl.drawElements(gl.TRIANGLES, 3 * mesh.faces, gl.UNSIGNED_INT, 0);
        });
        gl.disable(gl.CULL_FACE);
        if (!scene.particles) return;
        gl.useProgram(this.ball.made);
        u = this.ball.places;
        gl.uniformMatrix4fv(u.view, false, view);
        gl.uniform1f(u.scale, scale);
        gl.uniform1i(u.disc, scene.dim === 2);
        gl.uniform1i(u.mask, plain);
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

    along({first, count, closed}) {  // ends of the segments of a line through vertices
        const x = this.x, made = new Float32Array(6 * (closed ? count : count - 1));
        for (let k = 0; 6 * k < made.length; k++)
            [k, (k + 1) % count].forEach((at, end) => {
                for (let i = 0; i < 3; i++) made[6 * k + 3 * end + i] = x[3 * (first + at) + i];
            });
        return made;
    }

    segments(view, ends, color, width = 2.6) {  // ribbons that lie parallel to the screen, since lines are one pixel wide
        const gl = this.gl, {distance, tangent, toward} = this.camera, made = [];
        const half = width * distance * tangent / this.canvas.height * (devicePixelRatio || 1);
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

// The view of a scene in a browser, and the mouse and the fingers that turn it.

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
        const {eye, center} = this.start, arm = sub(eye, center);
        this.center = [...center];
        this.distance = Math.hypot(...arm);
        this.azimuth = Math.atan2(arm[1], arm[0]);
        this.elevation = Math.asin(arm[2] / this.distance);
        this.fit(this.aspect || 1e9);
    }
    fit(aspect) {  // on a narrow screen the angle of view grows, so that nothing is cut off at the sides
        this.aspect = aspect;
        this.tangent = Math.tan(this.start.field * Math.PI / 360) * Math.max(1, this.start.aspect / aspect);
    }
    seen(point, width, height) {  // where a point is seen, in pixels
        const arm = sub(point, this.eye), scale = height / (2 * this.tangent * -dot(arm, this.toward));
        return [width / 2 + scale * dot(arm, this.right), height / 2 - scale * dot(arm, this.up)];
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

// --- mouse and fingers -----------------------------------------------------------------------------------------------

function isInScrollingPage(canvas) {
    if (document.fullscreenElement) return false;
    if (window !== window.parent) return true;  // whether the page around a frame scrolls cannot be asked everywhere
    const scrolls = e => e.scrollHeight > e.clientHeight && /auto|scroll/.test(getComputedStyle(e).overflowY);
    for (let e = canvas.parentElement; e; e = e.parentElement) if (scrolls(e)) return true;
    return document.scrollingElement.scrollHeight > innerHeight + 1;
}

// One finger or the left button turns the view, the right button or Shift moves it, two fingers or the wheel do both.
// In a page that scrolls, the wheel is for the view once the view was clicked.
// `hand` may take a pointer that goes down: {takes(event), moves(event), releases()}.
function steer(canvas, picture, changed, hand = null) {
    const fingers = new Map();
    let held = null;
    const middle = all => [0, 1].map(i => all.reduce((sum, e) => sum + (i ? e.clientY : e.clientX), 0) / all.length);
    const apart = ([a, b]) => Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY);
    const release = () => {
        if (held === "hand") hand.releases();
        held = null;
    };
    canvas.onpointerdown = event => {
        if (!picture.camera) return;
        canvas.focus({preventScroll: true});
        canvas.setPointerCapture(event.pointerId);
        release();
        fingers.set(event.pointerId, event);
        const plain = event.button === 0 && !event.shiftKey;
        if (fingers.size > 1) held = "pinch";
        else if (plain && hand?.takes(event)) held = "hand";
        else held = plain ? "turn" : "pan";
        changed();
        event.preventDefault();
    };
    canvas.onpointermove = event => {
        if (!held || !fingers.has(event.pointerId)) return;
        const before = [...fingers.values()], height = canvas.clientHeight;
        fingers.set(event.pointerId, event);
        const after = [...fingers.values()];
        const [dx, dy] = middle(after).map((value, i) => (value - middle(before)[i]) / height);
        if (held === "hand") hand.moves(event);
        if (held === "turn") picture.camera.turn(4 * dx, 4 * dy);
        if (held === "pan" || held === "pinch") picture.camera.pan(dx, dy);
        if (held === "pinch") picture.camera.zoom(apart(before) / Math.max(apart(after), 1));
        changed();
    };
    canvas.onpointerup = canvas.onpointercancel = event => {
        fingers.delete(event.pointerId);
        release();
        if (fingers.size === 1) held = "turn";
    };
    canvas.oncontextmenu = event => event.preventDefault();
    canvas.addEventListener("wheel", event => {
        if (!canvas.matches(":focus") && isInScrollingPage(canvas)) return;  // whoever scrolls past does not mean the view
        picture.camera?.zoom(Math.exp(0.001 * event.deltaY));
        changed();
        event.preventDefault();
    }, {passive: false});
    return {missed: () => { if (held === "hand") held = "turn"; }};
}

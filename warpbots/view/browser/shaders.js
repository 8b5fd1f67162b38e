// Programs of WebGL 2 by which picture.js draws.

const MESH_VERTEX = `#version 300 es
layout(location = 0) in vec3 position;
layout(location = 1) in vec3 normal;
layout(location = 2) in vec4 color;
uniform mat4 view, model;
out vec3 place, up;
out vec4 paint;
void main() {
    vec4 world = model * vec4(position, 1.0);
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
uniform bool flat_, mask;
out vec4 pixel;
void main() {
    if (paint.a * color.a < 0.99) discard;
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
uniform float scale;
out vec4 paint;
void main() {
    gl_Position = view * vec4(position, 1.0);
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
const BLUR_VERTEX = `#version 300 es
out vec2 at;
void main() {  // a triangle over everything
    at = vec2(gl_VertexID == 1 ? 2.0 : 0.0, gl_VertexID == 2 ? 2.0 : 0.0);
    gl_Position = vec4(2.0 * at - 1.0, 0.0, 1.0);
}`;
const BLUR_FRAGMENT = `#version 300 es
precision highp float;
in vec2 at;
uniform sampler2D cover;
uniform vec2 along;  // one cell
out vec4 pixel;
void main() {  // a Gaussian of 1.6 cells, as in films
    float sum = 0.0, weights = 0.0;
    for (int i = -4; i <= 4; i++) {
        float weight = exp(-0.5 * float(i * i) / 2.56);
        sum += weight * texture(cover, at + float(i) * along).r;
        weights += weight;
    }
    pixel = vec4(sum / weights);
}`;
const SHADOW_FRAGMENT = `#version 300 es
precision highp float;
in vec2 at;
uniform sampler2D cover;
uniform float darkness;
out vec4 pixel;
void main() { pixel = vec4(0.0, 0.0, 0.0, darkness * texture(cover, at).r); }`;
const SHADOW_VERTEX = `#version 300 es
layout(location = 0) in vec3 position;
uniform mat4 view, above;
out vec2 at;
void main() {
    gl_Position = view * vec4(position, 1.0);
    at = 0.5 + 0.5 * (above * vec4(position, 1.0)).xy;
}`;
const CELLS = 256;  // of the shadow, along each axis

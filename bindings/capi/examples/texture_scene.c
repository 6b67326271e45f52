// A scene that OpenGL draws, streamed as texture video: it is encoded in memory of the graphics processor, and the main
// processor touches no pixel.
//
//     texture_scene 127.0.0.1:7000 [FRAMES]
//     rushes texture view 127.0.0.1:7000
//
// With port 0 it selects a free one, and says which. It needs a library that was installed with --gpu, and ends after
// FRAMES frames, or with Escape.
#define GL_GLEXT_PROTOTYPES
#include <SDL.h>
#include <SDL_opengl.h>
#include <rushes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A program that draws one frame at a time needs three memories.
enum { WIDTH = 1280, HEIGHT = 720, MEMORIES = 4 };

static struct {
    PFNGLCREATEMEMORYOBJECTSEXTPROC create;
    PFNGLMEMORYOBJECTPARAMETERIVEXTPROC set;
    PFNGLIMPORTMEMORYFDEXTPROC import;
    PFNGLNAMEDBUFFERSTORAGEMEMEXTPROC storage;
} gl;

static void fail(const char *what, const char *why) {
    fprintf(stderr, "texture_scene: %s: %s\n", what, why);
    exit(1);
}

static void check(rushes_status status, const char *what) {
    if (status < 0) fail(what, rushes_last_error_message());
}

// Returns the buffer of OpenGL with the memory of a frame. Memory is imported once and used for many frames.
static GLuint buffer_of(const rushes_gpu_frame *frame) {
    static struct { uint64_t memory; GLuint buffer; } known[MEMORIES];
    static int count;
    rushes_gpu_frame_view view;
    check(rushes_gpu_frame_look(frame, &view, sizeof view), "cannot look at a frame");
    for (int n = 0; n < count; n++)
        if (known[n].memory == view.memory) return known[n].buffer;
    if (count == MEMORIES) fail("memory", "there is more of it than frames");
    rushes_gpu_memory memory;
    check(rushes_gpu_frame_export(frame, &memory, sizeof memory), "cannot export a frame");
    GLint is_dedicated = memory.is_dedicated;
    GLuint object;
    gl.create(1, &object);
    gl.set(object, GL_DEDICATED_MEMORY_OBJECT_EXT, &is_dedicated);
    gl.import(object, memory.size, GL_HANDLE_TYPE_OPAQUE_FD_EXT, memory.fd);
    known[count].memory = view.memory;
    glCreateBuffers(1, &known[count].buffer);
    gl.storage(known[count].buffer, (GLsizeiptr)view.len, object, 0);
    if (glGetError() != GL_NO_ERROR) fail("cannot import a frame", "OpenGL refuses the memory (is it of the same graphics processor?)");
    return known[count++].buffer;
}

static GLuint shader(GLenum kind, const char *text) {
    GLuint program = glCreateShaderProgramv(kind, 1, &text);
    GLint works;
    glGetProgramiv(program, GL_LINK_STATUS, &works);
    if (!works) fail("a shader", "OpenGL refuses it");
    return program;
}

static SDL_Window *open_window(void) {
    if (SDL_Init(SDL_INIT_VIDEO)) fail("no screen", SDL_GetError());
    SDL_GL_SetAttribute(SDL_GL_CONTEXT_MAJOR_VERSION, 4);
    SDL_GL_SetAttribute(SDL_GL_CONTEXT_MINOR_VERSION, 5);
    SDL_GL_SetAttribute(SDL_GL_CONTEXT_PROFILE_MASK, SDL_GL_CONTEXT_PROFILE_CORE);
    SDL_Window *window = SDL_CreateWindow("texture_scene", SDL_WINDOWPOS_CENTERED, SDL_WINDOWPOS_CENTERED, WIDTH / 2,
                                          HEIGHT / 2, SDL_WINDOW_OPENGL);
    if (!window || !SDL_GL_CreateContext(window)) fail("no window with OpenGL 4.5", SDL_GetError());
    if (!SDL_GL_ExtensionSupported("GL_EXT_memory_object_fd")) fail("OpenGL", "it imports no memory");
    gl.create = (PFNGLCREATEMEMORYOBJECTSEXTPROC)SDL_GL_GetProcAddress("glCreateMemoryObjectsEXT");
    gl.set = (PFNGLMEMORYOBJECTPARAMETERIVEXTPROC)SDL_GL_GetProcAddress("glMemoryObjectParameterivEXT");
    gl.import = (PFNGLIMPORTMEMORYFDEXTPROC)SDL_GL_GetProcAddress("glImportMemoryFdEXT");
    gl.storage = (PFNGLNAMEDBUFFERSTORAGEMEMEXTPROC)SDL_GL_GetProcAddress("glNamedBufferStorageMemEXT");
    return window;
}

// Returns the picture to draw on. OpenGL begins with the lowest row where frames begin with the highest, so everything
// is drawn upside down.
static GLuint open_picture(GLuint *vertices) {
    GLuint texture, picture, vertex_array, pipeline;
    glCreateTextures(GL_TEXTURE_2D, 1, &texture);
    glTextureStorage2D(texture, 1, GL_RGBA8, WIDTH, HEIGHT);
    glCreateFramebuffers(1, &picture);
    glNamedFramebufferTexture(picture, GL_COLOR_ATTACHMENT0, texture, 0);
    glCreateVertexArrays(1, &vertex_array);
    glBindVertexArray(vertex_array);
    glCreateProgramPipelines(1, &pipeline);
    *vertices = shader(GL_VERTEX_SHADER, "#version 450\n"
                                         "layout(location = 0) uniform float angle;\n"
                                         "layout(location = 0) out vec3 colour;\n"
                                         "out gl_PerVertex { vec4 gl_Position; };\n"
                                         "void main() {\n"
                                         "    float at = angle + gl_VertexID * 2.0944;\n"
                                         "    colour = vec3(gl_VertexID == 0, gl_VertexID == 1, gl_VertexID == 2);\n"
                                         "    gl_Position = vec4(cos(at) * 9 / 16, -sin(at), 0, 1.25);\n"
                                         "}\n");
    glUseProgramStages(pipeline, GL_VERTEX_SHADER_BIT, *vertices);
    glUseProgramStages(pipeline, GL_FRAGMENT_SHADER_BIT,
                       shader(GL_FRAGMENT_SHADER, "#version 450\n"
                                                  "layout(location = 0) in vec3 colour;\n"
                                                  "layout(location = 0) out vec4 pixel;\n"
                                                  "void main() { pixel = vec4(colour, 1); }\n"));
    glBindProgramPipeline(pipeline);
    return picture;
}

// Draws a triangle that turns, between the sky and a meadow.
static void draw(GLuint picture, GLuint vertices, float angle) {
    static const GLfloat sky[] = {0.4f, 0.7f, 1, 1}, meadow[] = {0.2f, 0.5f, 0.1f, 1};
    glBindFramebuffer(GL_FRAMEBUFFER, picture);
    glViewport(0, 0, WIDTH, HEIGHT);
    glClearBufferfv(GL_COLOR, 0, sky);
    glEnable(GL_SCISSOR_TEST);
    glScissor(0, HEIGHT / 2, WIDTH, HEIGHT / 2);
    glClearBufferfv(GL_COLOR, 0, meadow);
    glDisable(GL_SCISSOR_TEST);
    glProgramUniform1f(vertices, 0, angle);
    glDrawArrays(GL_TRIANGLES, 0, 3);
}

// Copies the picture to the server's next frame, on the graphics processor, and sends it.
static void send_frame(const rushes_texture_server *server) {
    rushes_gpu_frame *frame;
    check(rushes_texture_server_canvas(server, &frame), "no frame");
    glBindBuffer(GL_PIXEL_PACK_BUFFER, buffer_of(frame));
    glReadPixels(0, 0, WIDTH, HEIGHT, GL_RGBA, GL_UNSIGNED_BYTE, NULL);
    glBindBuffer(GL_PIXEL_PACK_BUFFER, 0);
    // The frame must not be sent before it was written.
    glFinish();
    if (glGetError() != GL_NO_ERROR) fail("cannot copy a frame", "OpenGL refuses it");
    check(rushes_gpu_frame_send(frame), "cannot send a frame");
}

// Memory is imported by the graphics processor that it belongs to only.
static void check_device(const rushes_gpu *gpu) {
    rushes_gpu_description description;
    check(rushes_gpu_describe(gpu, &description, sizeof description), "cannot describe the graphics processor");
    GLubyte uuid[GL_UUID_SIZE_EXT] = {0};
    PFNGLGETUNSIGNEDBYTEVEXTPROC get = (PFNGLGETUNSIGNEDBYTEVEXTPROC)SDL_GL_GetProcAddress("glGetUnsignedBytevEXT");
    get(GL_DRIVER_UUID_EXT, uuid);
    if (memcmp(uuid, description.driver_uuid, sizeof uuid)) fail("OpenGL", "it has another driver than Vulkan");
}

static bool is_open(void) {
    SDL_Event event;
    while (SDL_PollEvent(&event))
        if (event.type == SDL_QUIT || (event.type == SDL_KEYDOWN && event.key.keysym.sym == SDLK_ESCAPE)) return false;
    return true;
}

int main(int count, char **words) {
    if (count < 2) fail("usage", "texture_scene ADDRESS [FRAMES]");
    long most = count > 2 ? atol(words[2]) : 0, sent = 0;
    SDL_Window *window = open_window();
    SDL_GL_SetSwapInterval(0);
    GLuint vertices, picture = open_picture(&vertices);

    rushes_gpu *gpu;
    rushes_texture_server *server;
    check(rushes_gpu_open(&gpu), "no graphics processor");
    check_device(gpu);
    check(rushes_texture_serve_gpu(words[1], gpu, RUSHES_MEMORY_HANDLE_OPAQUE_FD, "bc1", WIDTH, HEIGHT, 60, 1, NULL,
                                   &server),
          "cannot serve");
    uint16_t port;
    check(rushes_texture_server_port(server, &port), "no port");
    printf("listening on port %u\n", port);
    fflush(stdout);

    Uint32 due = SDL_GetTicks();
    while (is_open() && (!most || sent < most)) {
        // About sixty frames a second, whatever the screen does.
        Uint32 now = SDL_GetTicks();
        if ((Sint32)(due - now) > 0) SDL_Delay(due - now);
        due = (Sint32)(due - now) > -100 ? due + (sent % 3 ? 17 : 16) : now;
        draw(picture, vertices, (float)sent / 60);
        send_frame(server);
        sent++;
        int width, height;
        SDL_GL_GetDrawableSize(window, &width, &height);
        glBlitNamedFramebuffer(picture, 0, 0, HEIGHT, WIDTH, 0, 0, 0, width, height, GL_COLOR_BUFFER_BIT, GL_LINEAR);
        SDL_GL_SwapWindow(window);
    }
    check(rushes_texture_server_close(server), "cannot close");
    check(rushes_gpu_close(gpu), "cannot close");
    SDL_Quit();
    printf("%ld frames\n", sent);
    return 0;
}

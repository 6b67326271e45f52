// Texture video in a window of SDL, drawn by OpenGL. Frames are received into memory of the graphics processor, which
// OpenGL imports: the main processor copies nothing.
//
//     rushes texture serve pattern:1280x720@60 --listen 127.0.0.1:7000
//     texture_sdl 127.0.0.1:7000 [FRAMES]
//
// It needs a library that was installed with --gpu, and ends after FRAMES frames, with Escape or with the stream.
#define GL_GLEXT_PROTOTYPES
#include <SDL.h>
#include <SDL_opengl.h>
#include <rushes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

// More than are in memory at the same time: frames that are being received, and those that are held here.
enum { MEMORIES = 32 };

static struct {
    PFNGLCREATEMEMORYOBJECTSEXTPROC create;
    PFNGLDELETEMEMORYOBJECTSEXTPROC delete;
    PFNGLMEMORYOBJECTPARAMETERIVEXTPROC set;
    PFNGLIMPORTMEMORYFDEXTPROC import;
    PFNGLNAMEDBUFFERSTORAGEMEMEXTPROC storage;
} gl;

static void fail(const char *what, const char *why) {
    fprintf(stderr, "texture_sdl: %s: %s\n", what, why);
    exit(1);
}

static void check(rushes_status status, const char *what) {
    if (status < 0) fail(what, rushes_last_error_message());
}

// Called by a thread that receives: wakes the window.
static void on_frame(void *user) {
    SDL_Event event = {.type = *(Uint32 *)user};
    SDL_PushEvent(&event);
}

static struct known { uint64_t memory; GLuint object, buffer; } known[MEMORIES];

static void forget(struct known *old) {
    glDeleteBuffers(1, &old->buffer);
    gl.delete(1, &old->object);
    *old = (struct known){0};
}

// Returns the buffer of OpenGL with the memory of a frame. Memory is imported once and used for many frames.
static GLuint buffer_of(const rushes_gpu_frame *frame, const rushes_gpu_frame_view *view) {
    static int count;
    for (int n = 0; n < MEMORIES; n++)
        if (known[n].buffer && known[n].memory == view->memory) return known[n].buffer;
    struct known *new = &known[count++ % MEMORIES];
    forget(new);
    rushes_gpu_memory memory;
    check(rushes_gpu_frame_export(frame, &memory, sizeof memory), "cannot export a frame");
    GLint is_dedicated = memory.is_dedicated;
    gl.create(1, &new->object);
    gl.set(new->object, GL_DEDICATED_MEMORY_OBJECT_EXT, &is_dedicated);
    gl.import(new->object, memory.size, GL_HANDLE_TYPE_OPAQUE_FD_EXT, memory.fd);
    glCreateBuffers(1, &new->buffer);
    gl.storage(new->buffer, (GLsizeiptr)view->len, new->object, 0);
    if (glGetError() != GL_NO_ERROR) fail("cannot import a frame", "OpenGL refuses the memory (is it of the same graphics processor?)");
    new->memory = view->memory;
    return new->buffer;
}

// Copies the blocks of a frame from its memory to a texture, on the graphics processor.
static void take(const rushes_gpu_frame *frame, GLuint *texture) {
    static GLsizei width, height;
    rushes_gpu_frame_view view;
    check(rushes_gpu_frame_look(frame, &view, sizeof view), "cannot look at a frame");
    if ((GLsizei)view.width != width || (GLsizei)view.height != height) {
        width = (GLsizei)view.width, height = (GLsizei)view.height;
        GLint most;
        glGetIntegerv(GL_MAX_TEXTURE_SIZE, &most);
        if (width > most || height > most) fail("OpenGL", "it has no textures as large as the frames");
        // The memory of frames of the size before is not used again.
        for (int n = 0; n < MEMORIES; n++) forget(&known[n]);
        glDeleteTextures(1, texture);
        glCreateTextures(GL_TEXTURE_2D, 1, texture);
        glTextureStorage2D(*texture, 1, GL_COMPRESSED_RGB_S3TC_DXT1_EXT, width, height);
    }
    glBindBuffer(GL_PIXEL_UNPACK_BUFFER, buffer_of(frame, &view));
    glCompressedTextureSubImage2D(*texture, 0, 0, 0, width, height, GL_COMPRESSED_RGB_S3TC_DXT1_EXT,
                                  (GLsizei)view.len, NULL);
    glBindBuffer(GL_PIXEL_UNPACK_BUFFER, 0);
    // The memory must not be returned before it was read.
    glFinish();
}

static void draw(SDL_Window *window, GLuint texture) {
    int width, height;
    SDL_GL_GetDrawableSize(window, &width, &height);
    glViewport(0, 0, width, height);
    glBindTextureUnit(0, texture);
    glDrawArrays(GL_TRIANGLES, 0, 3);
    SDL_GL_SwapWindow(window);
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
    SDL_Window *window = SDL_CreateWindow("texture_sdl", SDL_WINDOWPOS_CENTERED, SDL_WINDOWPOS_CENTERED, 640, 360,
                                          SDL_WINDOW_OPENGL | SDL_WINDOW_RESIZABLE);
    if (!window || !SDL_GL_CreateContext(window)) fail("no window with OpenGL 4.5", SDL_GetError());
    if (!SDL_GL_ExtensionSupported("GL_EXT_memory_object_fd")) fail("OpenGL", "it imports no memory");
    if (!SDL_GL_ExtensionSupported("GL_EXT_texture_compression_s3tc")) fail("OpenGL", "it has no BC1");
    gl.create = (PFNGLCREATEMEMORYOBJECTSEXTPROC)SDL_GL_GetProcAddress("glCreateMemoryObjectsEXT");
    gl.delete = (PFNGLDELETEMEMORYOBJECTSEXTPROC)SDL_GL_GetProcAddress("glDeleteMemoryObjectsEXT");
    gl.set = (PFNGLMEMORYOBJECTPARAMETERIVEXTPROC)SDL_GL_GetProcAddress("glMemoryObjectParameterivEXT");
    gl.import = (PFNGLIMPORTMEMORYFDEXTPROC)SDL_GL_GetProcAddress("glImportMemoryFdEXT");
    gl.storage = (PFNGLNAMEDBUFFERSTORAGEMEMEXTPROC)SDL_GL_GetProcAddress("glNamedBufferStorageMemEXT");
    GLuint vertex_array, pipeline;
    glCreateVertexArrays(1, &vertex_array);
    glBindVertexArray(vertex_array);
    glCreateProgramPipelines(1, &pipeline);
    glUseProgramStages(pipeline, GL_VERTEX_SHADER_BIT,
                       shader(GL_VERTEX_SHADER, "#version 450\n"
                                                "layout(location = 0) out vec2 place;\n"
                                                "out gl_PerVertex { vec4 gl_Position; };\n"
                                                "void main() {\n"
                                                "    place = vec2(gl_VertexID & 2, gl_VertexID << 1 & 2);\n"
                                                "    gl_Position = vec4(place.x * 2 - 1, 1 - place.y * 2, 0, 1);\n"
                                                "}\n"));
    glUseProgramStages(pipeline, GL_FRAGMENT_SHADER_BIT,
                       shader(GL_FRAGMENT_SHADER, "#version 450\n"
                                                  "layout(binding = 0) uniform sampler2D frame;\n"
                                                  "layout(location = 0) in vec2 place;\n"
                                                  "layout(location = 0) out vec4 colour;\n"
                                                  "void main() { colour = texture(frame, place); }\n"));
    glBindProgramPipeline(pipeline);
    return window;
}

int main(int count, char **words) {
    if (count < 2) fail("usage", "texture_sdl ADDRESS [FRAMES]");
    long most = count > 2 ? atol(words[2]) : 0, shown = 0;
    SDL_Window *window = open_window();
    Uint32 new_frame = SDL_RegisterEvents(1);

    rushes_gpu *gpu;
    rushes_texture_options *options;
    rushes_texture_client *client;
    check(rushes_gpu_open(&gpu), "no graphics processor");
    check(rushes_texture_options_new(&options), "no options");
    check(rushes_texture_options_format(options, "bc1"), "the format");
    check(rushes_texture_connect_gpu(words[1], options, gpu, RUSHES_MEMORY_HANDLE_OPAQUE_FD, on_frame, &new_frame, NULL,
                                     &client),
          "cannot connect");

    GLuint texture = 0;
    bool open = true;
    while (open && (!most || shown < most)) {
        SDL_Event event;
        // The stream may end without a frame.
        if (!SDL_WaitEventTimeout(&event, 100)) {
            open = rushes_texture_client_wait(client, 0) == RUSHES_TIMEOUT;
        } else if (event.type == SDL_QUIT || (event.type == SDL_KEYDOWN && event.key.keysym.sym == SDLK_ESCAPE)) {
            open = false;
        } else if (event.type == new_frame) {
            // Only the last of several frames is shown.
            SDL_FlushEvent(new_frame);
            rushes_gpu_frame *frame;
            check(rushes_texture_client_last(client, &frame), "no frame");
            if (!frame) continue;
            take(frame, &texture);
            check(rushes_gpu_frame_release(frame), "cannot return a frame");
            draw(window, texture);
            shown++;
        } else if (event.type == SDL_WINDOWEVENT && texture) {
            draw(window, texture);
        }
    }
    check(rushes_texture_client_close(client), "cannot close");
    check(rushes_texture_options_close(options), "cannot close");
    check(rushes_gpu_close(gpu), "cannot close");
    printf("%ld frames\n", shown);
    return shown ? 0 : 1;
}

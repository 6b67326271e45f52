// Imports the memory of a frame, which is its standard input, into OpenGL, and writes its bytes to the standard
// output: another program, with another interface, that has what the graphics processor received. With a width and a
// height, it draws an RGBA8 picture of four colours there instead.
//
//     import_frame MEMORY_SIZE FRAME_SIZE IS_DEDICATED [WIDTH HEIGHT] <&memory >frame
#define GL_GLEXT_PROTOTYPES
#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <GL/gl.h>
#include <GL/glext.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void fail(const char *what)
{
    fprintf(stderr, "import_frame: %s\n", what);
    exit(1);
}

static void *function(const char *name)
{
    void *found = (void *)eglGetProcAddress(name);
    if (!found)
        fail(name);
    return found;
}

static void open_context(void)
{
    PFNEGLGETPLATFORMDISPLAYEXTPROC display_of = function("eglGetPlatformDisplayEXT");
    EGLDisplay display = display_of(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, NULL);
    if (!eglInitialize(display, NULL, NULL) || !eglBindAPI(EGL_OPENGL_API))
        fail("EGL has no display without a screen");
    const EGLint wanted[] = {EGL_CONTEXT_MAJOR_VERSION, 4, EGL_CONTEXT_MINOR_VERSION, 5, EGL_NONE};
    EGLContext context = eglCreateContext(display, EGL_NO_CONFIG_KHR, EGL_NO_CONTEXT, wanted);
    if (!context || !eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, context))
        fail("EGL has no OpenGL 4.5");
}

// Draws red and green above blue and white, and copies the pixels to a buffer. OpenGL's rows begin at the bottom, so
// that the picture is drawn upside down.
static void draw(GLuint buffer, GLsizei width, GLsizei height)
{
    static const GLfloat colours[4][4] = {{1, 0, 0, 1}, {0, 1, 0, 1}, {0, 0, 1, 1}, {1, 1, 1, 1}};
    GLuint texture, target;
    glCreateTextures(GL_TEXTURE_2D, 1, &texture);
    glTextureStorage2D(texture, 1, GL_RGBA8, width, height);
    glCreateFramebuffers(1, &target);
    glNamedFramebufferTexture(target, GL_COLOR_ATTACHMENT0, texture, 0);
    glBindFramebuffer(GL_FRAMEBUFFER, target);
    glEnable(GL_SCISSOR_TEST);
    for (int n = 0; n < 4; n++) {
        glScissor(n % 2 * (width / 2), n / 2 * (height / 2), width, height);
        glClearBufferfv(GL_COLOR, 0, colours[n]);
    }
    glBindBuffer(GL_PIXEL_PACK_BUFFER, buffer);
    glReadPixels(0, 0, width, height, GL_RGBA, GL_UNSIGNED_BYTE, NULL);
    glFinish();
}

int main(int count, char **words)
{
    if (count != 4 && count != 6)
        fail("usage: import_frame MEMORY_SIZE FRAME_SIZE IS_DEDICATED [WIDTH HEIGHT]");
    unsigned long long size = strtoull(words[1], NULL, 10), length = strtoull(words[2], NULL, 10);
    GLint is_dedicated = atoi(words[3]);
    open_context();
    PFNGLCREATEMEMORYOBJECTSEXTPROC create = function("glCreateMemoryObjectsEXT");
    PFNGLMEMORYOBJECTPARAMETERIVEXTPROC set = function("glMemoryObjectParameterivEXT");
    PFNGLIMPORTMEMORYFDEXTPROC import = function("glImportMemoryFdEXT");
    PFNGLCREATEBUFFERSPROC create_buffers = function("glCreateBuffers");
    PFNGLNAMEDBUFFERSTORAGEMEMEXTPROC storage = function("glNamedBufferStorageMemEXT");
    PFNGLGETNAMEDBUFFERSUBDATAPROC read_back = function("glGetNamedBufferSubData");
    GLuint memory, buffer;
    create(1, &memory);
    set(memory, GL_DEDICATED_MEMORY_OBJECT_EXT, &is_dedicated);
    // OpenGL takes the descriptor over.
    import(memory, size, GL_HANDLE_TYPE_OPAQUE_FD_EXT, dup(STDIN_FILENO));
    create_buffers(1, &buffer);
    storage(buffer, (GLsizeiptr)length, memory, 0);
    if (count == 6) {
        draw(buffer, atoi(words[4]), atoi(words[5]));
    } else {
        void *frame = malloc(length);
        if (!frame)
            fail("out of memory");
        read_back(buffer, 0, (GLsizeiptr)length, frame);
        if (fwrite(frame, 1, length, stdout) != length)
            fail("the frame cannot be written");
    }
    if (glGetError() != GL_NO_ERROR)
        fail("OpenGL refused the memory");
    return 0;
}

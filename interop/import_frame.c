// Imports the memory of a frame, which is its standard input, into OpenGL, and writes its bytes to the standard
// output: another program, with another interface, that has what the graphics processor received.
//
//     import_frame MEMORY_SIZE FRAME_SIZE IS_DEDICATED <&memory >frame
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

int main(int count, char **words)
{
    if (count != 4)
        fail("usage: import_frame MEMORY_SIZE FRAME_SIZE IS_DEDICATED");
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
    void *frame = malloc(length);
    if (!frame)
        fail("out of memory");
    read_back(buffer, 0, (GLsizeiptr)length, frame);
    if (glGetError() != GL_NO_ERROR)
        fail("OpenGL refused the memory");
    return fwrite(frame, 1, length, stdout) != length;
}

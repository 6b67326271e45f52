/* A Vulkan layer that writes down what becomes of a window's surface, and makes it fail when asked.
 *
 * The folder that FAULTS names has two files. "log" gets a line for each call, its name and result.
 * "wanted", where there is one, has a call's name, the result that it is to give, and how often.
 *
 * Vulkan's own headers are not on every machine: what is needed of them is declared here. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))
#define SUCCESS 0
#define SUBOPTIMAL 1000001003
#define ERROR_INITIALIZATION_FAILED (-3)
#define ERROR_NATIVE_WINDOW_IN_USE (-1000000001)
#define TYPE_LOADER_INSTANCE_CREATE_INFO 47
#define TYPE_LOADER_DEVICE_CREATE_INFO 48
#define FUNCTION_LAYER_LINK_INFO 0

typedef void (*any_function)(void);
typedef any_function (*get_function)(void *, const char *);

/* Where the next layer is, for an instance or a device. */
struct link {
    struct link *next;
    get_function instance_function;
    /* Of a device; a physical device's, which nobody here needs, of an instance. */
    get_function device_function;
};

struct chained {
    uint32_t type;
    struct chained *next;
    /* Of those that the loader puts there. */
    uint32_t function;
    struct link *link;
};

struct swapchain_info {
    uint32_t type;
    const void *next;
    uint32_t flags;
    uint64_t surface;
    uint32_t image[9];
    const uint32_t *families;
    uint32_t how[4];
    uint64_t old_swapchain;
};

static get_function next_instance_function, next_device_function;
static int32_t (*next_create_swapchain)(void *, const struct swapchain_info *, const void *,
                                        uint64_t *);
static void (*next_destroy_swapchain)(void *, uint64_t, const void *);
static int32_t (*next_acquire)(void *, uint64_t, uint64_t, uint64_t, uint64_t, uint32_t *);
static int32_t (*next_present)(void *, const void *);
static int32_t (*next_submit)(void *, uint32_t, const void *, uint64_t);

static pthread_mutex_t wanting = PTHREAD_MUTEX_INITIALIZER;
/* Those that there are: the thread of the window knows. */
static int swapchains;

static FILE *open_file(const char *name, const char *mode) {
    const char *folder = getenv("FAULTS");
    char path[4096];
    if (!folder) return NULL;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return fopen(path, mode);
}

/* Whether a call of this name is to fail now, and how. */
static int is_fault(const char *call, int32_t *result) {
    char name[32] = "";
    int wanted = SUCCESS, is_now = 0;
    unsigned times = 0;
    pthread_mutex_lock(&wanting);
    FILE *file = open_file("wanted", "r");
    if (file) {
        int is_whole = fscanf(file, "%31s %d %u", name, &wanted, &times) == 3;
        is_now = is_whole && times > 0 && strcmp(name, call) == 0;
        fclose(file);
    }
    if (is_now && (file = open_file("wanted", "w"))) {
        fprintf(file, "%s %d %u\n", name, wanted, times - 1);
        fclose(file);
    }
    pthread_mutex_unlock(&wanting);
    if (is_now) *result = wanted;
    return is_now;
}

static int32_t note(const char *call, int32_t result) {
    FILE *log = open_file("log", "a");
    if (log) {
        fprintf(log, "%s %d\n", call, (int)result);
        fclose(log);
    }
    return result;
}

static int32_t create_swapchain(void *device, const struct swapchain_info *info,
                                const void *allocator, uint64_t *swapchain) {
    int32_t result;
    if (!is_fault("swapchain", &result)) {
        /* Some drivers are as strict with a window that has one already; there is one window here. */
        int is_taken = swapchains > 0 && !info->old_swapchain;
        result = is_taken ? ERROR_NATIVE_WINDOW_IN_USE
                          : next_create_swapchain(device, info, allocator, swapchain);
        swapchains += result == SUCCESS;
    }
    return note("swapchain", result);
}

static void destroy_swapchain(void *device, uint64_t swapchain, const void *allocator) {
    swapchains -= swapchain != 0;
    next_destroy_swapchain(device, swapchain, allocator);
}

static int32_t acquire(void *device, uint64_t swapchain, uint64_t timeout, uint64_t semaphore,
                       uint64_t fence, uint32_t *index) {
    int32_t result, wanted;
    int is_wanted = is_fault("acquire", &wanted);
    /* An image that nobody was told of would never be given back; with this one there is one. */
    if (is_wanted && wanted != SUBOPTIMAL) return note("acquire", wanted);
    result = next_acquire(device, swapchain, timeout, semaphore, fence, index);
    return note("acquire", is_wanted && result == SUCCESS ? SUBOPTIMAL : result);
}

static int32_t present(void *queue, const void *info) {
    /* The semaphores are waited for even then. */
    int32_t result = next_present(queue, info), other;
    return note("present", is_fault("present", &other) ? other : result);
}

static int32_t submit(void *queue, uint32_t count, const void *submits, uint64_t fence) {
    int32_t result;
    /* Work that nobody knows of would read what has been given back. */
    if (!is_fault("submit", &result)) result = next_submit(queue, count, submits, fence);
    return note("submit", result);
}

static struct chained *loaders_own(void *info, uint32_t type) {
    struct chained *chained = ((struct chained *)info)->next;
    while (chained && !(chained->type == type && chained->function == FUNCTION_LAYER_LINK_INFO))
        chained = chained->next;
    return chained;
}

static int32_t create_instance(void *info, const void *allocator, void **instance) {
    struct chained *own = loaders_own(info, TYPE_LOADER_INSTANCE_CREATE_INFO);
    if (!own) return ERROR_INITIALIZATION_FAILED;
    next_instance_function = own->link->instance_function;
    own->link = own->link->next;
    int32_t (*create)(void *, const void *, void **) =
        (int32_t (*)(void *, const void *, void **))next_instance_function(NULL, "vkCreateInstance");
    return create(info, allocator, instance);
}

static int32_t create_device(void *physical, void *info, const void *allocator, void **device) {
    struct chained *own = loaders_own(info, TYPE_LOADER_DEVICE_CREATE_INFO);
    if (!own) return ERROR_INITIALIZATION_FAILED;
    get_function instance_function = own->link->instance_function;
    next_device_function = own->link->device_function;
    own->link = own->link->next;
    int32_t (*create)(void *, void *, const void *, void **) =
        (int32_t (*)(void *, void *, const void *, void **))instance_function(NULL, "vkCreateDevice");
    int32_t result = create(physical, info, allocator, device);
    if (result != SUCCESS) return result;
    *(any_function *)&next_create_swapchain = next_device_function(*device, "vkCreateSwapchainKHR");
    *(any_function *)&next_destroy_swapchain = next_device_function(*device, "vkDestroySwapchainKHR");
    *(any_function *)&next_acquire = next_device_function(*device, "vkAcquireNextImageKHR");
    *(any_function *)&next_present = next_device_function(*device, "vkQueuePresentKHR");
    *(any_function *)&next_submit = next_device_function(*device, "vkQueueSubmit");
    return result;
}

EXPORTED any_function faults_device_function(void *device, const char *name);
EXPORTED any_function faults_instance_function(void *instance, const char *name);

static any_function own_function(const char *name) {
    static const struct {
        const char *name;
        any_function function;
    } own[] = {
        {"vkGetInstanceProcAddr", (any_function)faults_instance_function},
        {"vkGetDeviceProcAddr", (any_function)faults_device_function},
        {"vkCreateInstance", (any_function)create_instance},
        {"vkCreateDevice", (any_function)create_device},
        {"vkCreateSwapchainKHR", (any_function)create_swapchain},
        {"vkDestroySwapchainKHR", (any_function)destroy_swapchain},
        {"vkAcquireNextImageKHR", (any_function)acquire},
        {"vkQueuePresentKHR", (any_function)present},
        {"vkQueueSubmit", (any_function)submit},
    };
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strcmp(own[i].name, name) == 0) return own[i].function;
    return NULL;
}

any_function faults_device_function(void *device, const char *name) {
    any_function own = own_function(name);
    return own ? own : next_device_function(device, name);
}

any_function faults_instance_function(void *instance, const char *name) {
    any_function own = own_function(name);
    if (own) return own;
    return next_instance_function ? next_instance_function(instance, name) : NULL;
}

// Texture video in a window of SDL, drawn by Vulkan. Frames are received into memory of the graphics processor, which
// the program imports into its own device of Vulkan: the main processor copies nothing.
//
//     rushes texture serve pattern:1280x720@60 --listen 127.0.0.1:7000
//     texture_vulkan 127.0.0.1:7000 [FRAMES]
//
// It needs a library that was installed with --gpu, and ends after it has shown FRAMES frames, with Escape or with the stream.
#include <SDL.h>
#include <SDL_vulkan.h>
#include <rushes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vulkan/vulkan.h>

// Upper limits. Devices, families of queues and formats beyond them are not looked at.
enum { MEMORIES = 32, IMAGES = 16, DEVICES = 16, FAMILIES = 16, FORMATS = 256 };

static struct {
    SDL_Window *window;
    VkInstance instance;
    VkSurfaceKHR surface;
    VkPhysicalDevice physical;
    VkDevice device;
    VkQueue queue;
    uint32_t family;
    VkCommandPool pool;
    VkCommandBuffer commands;
    VkFence fence;
    // The window's images.
    VkSurfaceFormatKHR format;
    VkSwapchainKHR swapchain;
    VkImage images[IMAGES];
    VkExtent2D size;
} vk;

// The last frame's picture. Its layout is that of a source of copies.
static struct { VkImage image; VkDeviceMemory memory; uint32_t width, height; } picture;

static struct { uint64_t memory; VkDeviceMemory object; VkBuffer buffer; } known[MEMORIES];

static void fail(const char *what, const char *why) {
    fprintf(stderr, "texture_vulkan: %s: %s\n", what, why);
    exit(1);
}

static void check(rushes_status status, const char *what) {
    if (status < 0) fail(what, rushes_last_error_message());
}

// Warnings, such as that a window's size has changed, are above zero.
static void must(VkResult result, const char *what) {
    char why[32];
    snprintf(why, sizeof why, "Vulkan's error %d", result);
    if (result < 0) fail(what, why);
}

// Called by a thread that receives: wakes the window.
static void on_frame(void *user) {
    SDL_Event event = {.type = *(Uint32 *)user};
    SDL_PushEvent(&event);
}

static void wait_for_fence(void) {
    must(vkWaitForFences(vk.device, 1, &vk.fence, VK_TRUE, UINT64_MAX), "cannot wait");
    must(vkResetFences(vk.device, 1, &vk.fence), "cannot wait");
}

static void begin(void) {
    VkCommandBufferBeginInfo plain = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    must(vkBeginCommandBuffer(vk.commands, &plain), "cannot record");
}

// Runs what was recorded, and waits until it is done.
static void finish(void) {
    must(vkEndCommandBuffer(vk.commands), "cannot record");
    VkSubmitInfo work = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &vk.commands,
    };
    must(vkQueueSubmit(vk.queue, 1, &work, vk.fence), "cannot draw");
    wait_for_fence();
}

static const VkImageSubresourceRange WHOLE = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
static const VkImageSubresourceLayers LAYER = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1};

// Makes the copies that follow wait for those before, and changes the layout of the image. The buffer, if there is one,
// goes from one family of queues to another.
static void order(VkImage image, VkImageLayout old, VkImageLayout new, VkBuffer buffer, uint32_t from, uint32_t to) {
    const VkAccessFlags access = VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
    VkImageMemoryBarrier images = {
        .sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER, .srcAccessMask = access, .dstAccessMask = access,
        .oldLayout = old, .newLayout = new, .image = image, .subresourceRange = WHOLE,
        .srcQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED, .dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
    };
    VkBufferMemoryBarrier buffers = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER, .srcAccessMask = access, .dstAccessMask = access,
        .srcQueueFamilyIndex = from, .dstQueueFamilyIndex = to, .buffer = buffer, .size = VK_WHOLE_SIZE,
    };
    vkCmdPipelineBarrier(vk.commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 0, NULL,
                         buffer != VK_NULL_HANDLE, &buffers, 1, &images);
}

static void forget(int n) {
    vkDestroyBuffer(vk.device, known[n].buffer, NULL);
    vkFreeMemory(vk.device, known[n].object, NULL);
    memset(&known[n], 0, sizeof known[n]);
}

// Returns a buffer with the memory of a frame. Memory is imported once and used for many frames.
static VkBuffer buffer_of(const rushes_gpu_frame *frame, const rushes_gpu_frame_view *view) {
    static int count;
    for (int n = 0; n < MEMORIES; n++)
        if (known[n].buffer && known[n].memory == view->memory) return known[n].buffer;
    int n = count++ % MEMORIES;
    forget(n);
    rushes_gpu_memory memory;
    check(rushes_gpu_frame_export(frame, &memory, sizeof memory), "cannot export a frame");
    const VkExternalMemoryHandleTypeFlagBits handle = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
    VkExternalMemoryBufferCreateInfo external = {
        .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO, .handleTypes = handle,
    };
    // As the library's own buffer, so that the same memory fits.
    VkBufferCreateInfo same = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .pNext = &external, .size = memory.buffer_size,
        .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                 VK_BUFFER_USAGE_TRANSFER_DST_BIT,
    };
    must(vkCreateBuffer(vk.device, &same, NULL, &known[n].buffer), "no buffer for a frame");
    VkMemoryDedicatedAllocateInfo dedicated = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO, .buffer = known[n].buffer,
    };
    // The import takes the descriptor over.
    VkImportMemoryFdInfoKHR import = {
        .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR, .pNext = memory.is_dedicated ? &dedicated : NULL,
        .handleType = handle, .fd = memory.fd,
    };
    VkMemoryAllocateInfo asked = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .pNext = &import, .allocationSize = memory.size,
        .memoryTypeIndex = memory.memory_type,
    };
    must(vkAllocateMemory(vk.device, &asked, NULL, &known[n].object), "cannot import a frame");
    must(vkBindBufferMemory(vk.device, known[n].buffer, known[n].object, 0), "cannot import a frame");
    known[n].memory = view->memory;
    return known[n].buffer;
}

// Creates the picture, which keeps the blocks of BC1 as they are. Its format is of plain values, as the window's is:
// nothing changes the colours.
static void open_picture(uint32_t width, uint32_t height) {
    VkPhysicalDeviceProperties limits;
    vkGetPhysicalDeviceProperties(vk.physical, &limits);
    if (width > limits.limits.maxImageDimension2D || height > limits.limits.maxImageDimension2D)
        fail(limits.deviceName, "it has no images as large as the frames");
    // The memory of frames of the size before is not used again.
    for (int n = 0; n < MEMORIES; n++) forget(n);
    vkDestroyImage(vk.device, picture.image, NULL);
    vkFreeMemory(vk.device, picture.memory, NULL);
    VkImageCreateInfo blocks = {
        .sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO, .imageType = VK_IMAGE_TYPE_2D,
        .format = VK_FORMAT_BC1_RGB_UNORM_BLOCK, .extent = {width, height, 1}, .mipLevels = 1, .arrayLayers = 1,
        .samples = VK_SAMPLE_COUNT_1_BIT, .usage = VK_IMAGE_USAGE_TRANSFER_SRC_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT,
    };
    must(vkCreateImage(vk.device, &blocks, NULL, &picture.image), "no image");
    VkMemoryRequirements needs;
    VkPhysicalDeviceMemoryProperties all;
    vkGetImageMemoryRequirements(vk.device, picture.image, &needs);
    vkGetPhysicalDeviceMemoryProperties(vk.physical, &all);
    VkMemoryAllocateInfo asked = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .allocationSize = needs.size};
    for (;; asked.memoryTypeIndex++) {
        uint32_t kind = asked.memoryTypeIndex;
        if (kind == all.memoryTypeCount) fail("no image", "the graphics processor has no memory for it");
        bool is_local = all.memoryTypes[kind].propertyFlags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
        if (needs.memoryTypeBits >> kind & 1 && is_local) break;
    }
    must(vkAllocateMemory(vk.device, &asked, NULL, &picture.memory), "no memory for an image");
    must(vkBindImageMemory(vk.device, picture.image, picture.memory, 0), "no memory for an image");
    picture.width = width, picture.height = height;
}

// Copies the blocks of a frame from its memory to the picture, on the graphics processor.
static void take(const rushes_gpu_frame *frame) {
    rushes_gpu_frame_view view;
    check(rushes_gpu_frame_look(frame, &view, sizeof view), "cannot look at a frame");
    if (view.width != picture.width || view.height != picture.height) open_picture(view.width, view.height);
    VkBuffer buffer = buffer_of(frame, &view);
    begin();
    // The library has waited until the frame was written, and does not name a family of queues that gets the buffer.
    order(picture.image, VK_IMAGE_LAYOUT_UNDEFINED, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL,
          buffer, VK_QUEUE_FAMILY_EXTERNAL, vk.family);
    VkBufferImageCopy area = {.imageSubresource = LAYER, .imageExtent = {view.width, view.height, 1}};
    vkCmdCopyBufferToImage(vk.commands, buffer, picture.image, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, 1, &area);
    order(picture.image, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL,
          buffer, vk.family, VK_QUEUE_FAMILY_EXTERNAL);
    // The memory must not be returned before it was read.
    finish();
}

// Gives the window's images back, as those of another size are needed.
static void drop_images(void) {
    vkDeviceWaitIdle(vk.device);
    vkDestroySwapchainKHR(vk.device, vk.swapchain, NULL);
    vk.swapchain = VK_NULL_HANDLE;
}

// Gets images of the window's present size. Returns false while it has none.
static bool get_images(void) {
    VkSurfaceCapabilitiesKHR can;
    must(vkGetPhysicalDeviceSurfaceCapabilitiesKHR(vk.physical, vk.surface, &can), "no window");
    if (!(can.supportedUsageFlags & VK_IMAGE_USAGE_TRANSFER_DST_BIT)) fail("the window", "nothing can be copied to it");
    vk.size = can.currentExtent;
    // With Wayland, the program says the size.
    if (vk.size.width == UINT32_MAX)
        SDL_Vulkan_GetDrawableSize(vk.window, (int *)&vk.size.width, (int *)&vk.size.height);
    if (!vk.size.width || !vk.size.height) return false;
    const VkExtent2D least = can.minImageExtent, most = can.maxImageExtent;
    vk.size.width = SDL_clamp(vk.size.width, least.width, most.width);
    vk.size.height = SDL_clamp(vk.size.height, least.height, most.height);
    uint32_t count = can.minImageCount + 1;
    if (can.maxImageCount && count > can.maxImageCount) count = can.maxImageCount;
    VkSwapchainCreateInfoKHR asked = {
        .sType = VK_STRUCTURE_TYPE_SWAPCHAIN_CREATE_INFO_KHR, .surface = vk.surface, .minImageCount = count,
        .imageFormat = vk.format.format, .imageColorSpace = vk.format.colorSpace, .imageExtent = vk.size,
        .imageArrayLayers = 1, .imageUsage = VK_IMAGE_USAGE_TRANSFER_DST_BIT, .preTransform = can.currentTransform,
        // The first that it has: opaque, if it can.
        .compositeAlpha = can.supportedCompositeAlpha & -can.supportedCompositeAlpha,
        .presentMode = VK_PRESENT_MODE_FIFO_KHR, .clipped = VK_TRUE,
    };
    must(vkCreateSwapchainKHR(vk.device, &asked, NULL, &vk.swapchain), "no images for the window");
    count = IMAGES;
    if (vkGetSwapchainImagesKHR(vk.device, vk.swapchain, &count, vk.images) != VK_SUCCESS)
        fail("no images for the window", "Vulkan has too many or none");
    return true;
}

// Draws the picture on the whole window. Returns false if the window cannot be seen.
static bool draw(void) {
    const uint64_t most = 100 * 1000 * 1000;
    uint32_t at;
    VkResult result = VK_ERROR_OUT_OF_DATE_KHR;
    // The size may change while it draws.
    for (int tries = 0; tries < 3 && result == VK_ERROR_OUT_OF_DATE_KHR; tries++) {
        if (!vk.swapchain && !get_images()) return false;
        result = vkAcquireNextImageKHR(vk.device, vk.swapchain, most, VK_NULL_HANDLE, vk.fence, &at);
        if (result == VK_ERROR_OUT_OF_DATE_KHR) drop_images();
    }
    if (result == VK_ERROR_OUT_OF_DATE_KHR || result == VK_TIMEOUT) return false;
    must(result, "no image of the window");
    wait_for_fence();
    begin();
    order(vk.images[at], VK_IMAGE_LAYOUT_UNDEFINED, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, VK_NULL_HANDLE, 0, 0);
    VkImageBlit area = {
        .srcSubresource = LAYER, .srcOffsets[1] = {(int32_t)picture.width, (int32_t)picture.height, 1},
        .dstSubresource = LAYER, .dstOffsets[1] = {(int32_t)vk.size.width, (int32_t)vk.size.height, 1},
    };
    vkCmdBlitImage(vk.commands, picture.image, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, vk.images[at],
                   VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, 1, &area, VK_FILTER_LINEAR);
    order(vk.images[at], VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, VK_IMAGE_LAYOUT_PRESENT_SRC_KHR, VK_NULL_HANDLE, 0, 0);
    // It waits, so that no semaphore is needed.
    finish();
    VkPresentInfoKHR shown = {
        .sType = VK_STRUCTURE_TYPE_PRESENT_INFO_KHR, .swapchainCount = 1, .pSwapchains = &vk.swapchain,
        .pImageIndices = &at,
    };
    result = vkQueuePresentKHR(vk.queue, &shown);
    if (result == VK_ERROR_OUT_OF_DATE_KHR) drop_images();
    else must(result, "cannot show");
    return result >= 0;
}

static void open_window(void) {
    if (SDL_Init(SDL_INIT_VIDEO)) fail("no screen", SDL_GetError());
    vk.window = SDL_CreateWindow("texture_vulkan", SDL_WINDOWPOS_CENTERED, SDL_WINDOWPOS_CENTERED, 640, 360,
                                 SDL_WINDOW_VULKAN | SDL_WINDOW_RESIZABLE);
    const char *names[16];
    unsigned count = 16;
    if (!vk.window || !SDL_Vulkan_GetInstanceExtensions(vk.window, &count, names))
        fail("no window with Vulkan", SDL_GetError());
    VkApplicationInfo program = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .apiVersion = VK_API_VERSION_1_1};
    VkInstanceCreateInfo instance = {
        .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &program, .enabledExtensionCount = count,
        .ppEnabledExtensionNames = names,
    };
    must(vkCreateInstance(&instance, NULL, &vk.instance), "no Vulkan 1.1");
    if (!SDL_Vulkan_CreateSurface(vk.window, vk.instance, &vk.surface)) fail("no window with Vulkan", SDL_GetError());
}

// Finds the graphics processor that the library uses, with the same driver: no other imports its memory.
static void find_processor(const rushes_gpu *gpu) {
    rushes_gpu_description used;
    check(rushes_gpu_describe(gpu, &used, sizeof used), "no graphics processor");
    VkPhysicalDevice all[DEVICES];
    uint32_t count = DEVICES, families = FAMILIES, formats = FORMATS;
    must(vkEnumeratePhysicalDevices(vk.instance, &count, all), "Vulkan lists nothing");
    for (uint32_t n = 0; n < count && !vk.physical; n++) {
        VkPhysicalDeviceIDProperties id = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES};
        VkPhysicalDeviceProperties2 asked = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &id};
        vkGetPhysicalDeviceProperties2(all[n], &asked);
        if (!memcmp(id.deviceUUID, used.device_uuid, VK_UUID_SIZE) &&
            !memcmp(id.driverUUID, used.driver_uuid, VK_UUID_SIZE)) vk.physical = all[n];
    }
    if (!vk.physical) fail(used.name, "Vulkan has no such graphics processor here");
    VkQueueFamilyProperties family[FAMILIES];
    vkGetPhysicalDeviceQueueFamilyProperties(vk.physical, &families, family);
    for (vk.family = 0;; vk.family++) {
        if (vk.family == families) fail(used.name, "it draws nothing in this window");
        VkBool32 shows = VK_FALSE;
        vkGetPhysicalDeviceSurfaceSupportKHR(vk.physical, vk.family, vk.surface, &shows);
        if (shows && family[vk.family].queueFlags & VK_QUEUE_GRAPHICS_BIT) break;
    }
    VkSurfaceFormatKHR format[FORMATS];
    must(vkGetPhysicalDeviceSurfaceFormatsKHR(vk.physical, vk.surface, &formats, format), "the window's formats");
    for (uint32_t n = 0; n < formats && !vk.format.format; n++)
        if ((format[n].format == VK_FORMAT_B8G8R8A8_UNORM || format[n].format == VK_FORMAT_R8G8B8A8_UNORM) &&
            format[n].colorSpace == VK_COLOR_SPACE_SRGB_NONLINEAR_KHR) vk.format = format[n];
    if (!vk.format.format) fail("the window", "it has no format of plain values of 8 bits");
}

static void open_device(void) {
    float first = 1;
    VkDeviceQueueCreateInfo queue = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .queueFamilyIndex = vk.family, .queueCount = 1,
        .pQueuePriorities = &first,
    };
    const char *names[] = {VK_KHR_SWAPCHAIN_EXTENSION_NAME, VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME};
    VkPhysicalDeviceFeatures features = {.textureCompressionBC = VK_TRUE};
    VkDeviceCreateInfo device = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, .queueCreateInfoCount = 1, .pQueueCreateInfos = &queue,
        .enabledExtensionCount = 2, .ppEnabledExtensionNames = names, .pEnabledFeatures = &features,
    };
    must(vkCreateDevice(vk.physical, &device, NULL, &vk.device), "no device with windows, imported memory and BC1");
    vkGetDeviceQueue(vk.device, vk.family, 0, &vk.queue);
    VkCommandPoolCreateInfo pool = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, .queueFamilyIndex = vk.family,
        .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
    };
    must(vkCreateCommandPool(vk.device, &pool, NULL, &vk.pool), "no commands");
    VkCommandBufferAllocateInfo commands = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, .commandPool = vk.pool, .commandBufferCount = 1,
    };
    must(vkAllocateCommandBuffers(vk.device, &commands, &vk.commands), "no commands");
    VkFenceCreateInfo fence = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    must(vkCreateFence(vk.device, &fence, NULL, &vk.fence), "no fence");
}

static void close_window(void) {
    vkDeviceWaitIdle(vk.device);
    for (int n = 0; n < MEMORIES; n++) forget(n);
    vkDestroyImage(vk.device, picture.image, NULL);
    vkFreeMemory(vk.device, picture.memory, NULL);
    vkDestroySwapchainKHR(vk.device, vk.swapchain, NULL);
    vkDestroyFence(vk.device, vk.fence, NULL);
    vkDestroyCommandPool(vk.device, vk.pool, NULL);
    vkDestroyDevice(vk.device, NULL);
    vkDestroySurfaceKHR(vk.instance, vk.surface, NULL);
    vkDestroyInstance(vk.instance, NULL);
    SDL_DestroyWindow(vk.window);
    SDL_Quit();
}

int main(int count, char **words) {
    if (count < 2) fail("usage", "texture_vulkan ADDRESS [FRAMES]");
    long most = count > 2 ? atol(words[2]) : 0, shown = 0;
    rushes_gpu *gpu;
    check(rushes_gpu_open(&gpu), "no graphics processor");
    open_window();
    find_processor(gpu);
    open_device();
    Uint32 new_frame = SDL_RegisterEvents(1);

    rushes_texture_options *options;
    rushes_texture_client *client;
    check(rushes_texture_options_new(&options), "no options");
    check(rushes_texture_options_format(options, "bc1"), "the format");
    check(rushes_texture_connect_gpu(words[1], options, gpu, RUSHES_MEMORY_HANDLE_OPAQUE_FD, on_frame, &new_frame, NULL,
                                     &client),
          "cannot connect");

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
            take(frame);
            check(rushes_gpu_frame_release(frame), "cannot return a frame");
            shown += draw();
        } else if (event.type == SDL_WINDOWEVENT && picture.image) {
            if (event.window.event == SDL_WINDOWEVENT_SIZE_CHANGED) drop_images();
            draw();
        }
    }
    check(rushes_texture_client_close(client), "cannot close");
    check(rushes_texture_options_close(options), "cannot close");
    check(rushes_gpu_close(gpu), "cannot close");
    close_window();
    printf("%ld frames\n", shown);
    return shown ? 0 : 1;
}

/* Makes an element, says so, and waits for a signal. */
#include <gst/gst.h>
#include <unistd.h>

int main(int count, char **words) {
    gst_init(&count, &words);
    GstElement *element = gst_element_factory_make("nvstreammux", NULL);
    g_print("%s\n", element == NULL ? "none" : "ready");
    pause();
    return 0;
}

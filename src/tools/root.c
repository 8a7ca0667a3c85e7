// SPDX-License-Identifier: Apache-2.0
#include "tools/root.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_SIZE = 4096 + 256 };

bool root_find(char *root, size_t size, const char *name, const char *build)
{
    char stamp[PATH_SIZE];
    if (strchr(name, '/')) {
        snprintf(root, size, "%s", name);
    } else {
        snprintf(root, size, "%s/rocm/%s", build, name);
    }
    snprintf(stamp, sizeof stamp, "%s/versions", root);
    if (access(stamp, R_OK) == 0) return true;
    fprintf(stderr,
            "keel sim: %s: there is no ROCm in %s; the script sim/rocm of Keel's source fetches a "
            "suite of Debian: bookworm, trixie, forky, sid or experimental\n",
            name, root);
    return false;
}

#if defined(__linux__) && !KEEL_PORTABLE
#include <sched.h>
#include <sys/mount.h>

static bool file_write(const char *path, const char *text)
{
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0) return false;
    bool written = write(file, text, strlen(text)) == (ssize_t)strlen(text);
    close(file);
    return written;
}

// A mount namespace of our own, inside of a user namespace in which we are who we were.
static bool namespace_enter(void)
{
    unsigned user = geteuid(), group = getegid();
    char users[64], groups[64];
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return unshare(CLONE_NEWNS) == 0;
    snprintf(users, sizeof users, "%u %u 1", user, user);
    snprintf(groups, sizeof groups, "%u %u 1", group, group);
    return file_write("/proc/self/setgroups", "deny") && file_write("/proc/self/uid_map", users) &&
           file_write("/proc/self/gid_map", groups);
}

// Shows what is at `from` at `to` as well, for this process alone.
static bool bind_to(const char *from, const char *to)
{
    return mount(from, to, NULL, MS_BIND | MS_REC, NULL) == 0;
}

static bool usr_replace(const char *root, const char *sim)
{
    static const char cache[] = "/etc/ld.so.cache";
    char place[PATH_SIZE], usr[PATH_SIZE], empty[PATH_SIZE];
    snprintf(place, sizeof place, "%s" ROOT_SIM, root);
    snprintf(usr, sizeof usr, "%s/usr", root);
    snprintf(empty, sizeof empty, "%s%s", root, cache);
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) return false;
    if (!bind_to(sim, place) || !bind_to(usr, "/usr")) return false;
    // A machine may have no cache, and may keep it: its entries name files, which this /usr has or
    // has not.
    (void)bind_to(empty, cache);
    return true;
}

bool root_enter(const char *root, const char *sim)
{
    if (namespace_enter() && usr_replace(root, sim)) return true;
    fprintf(stderr, "keel sim: this machine allows no namespaces (%s)\n", strerror(errno));
    return false;
}
#else
bool root_enter(const char *root, const char *sim)
{
    (void)root, (void)sim;
    fprintf(stderr, "keel sim: this build has no namespaces\n");
    return false;
}
#endif

// The path of a program: that of the folder before the machine's.
static bool program_find(char *path, size_t size, const char *root, const char *name)
{
    if (strchr(name, '/')) {
        snprintf(path, size, "%s", name);
        return access(path, X_OK) == 0;
    }
    snprintf(path, size, "%s/usr/bin/%s", root, name);
    if (access(path, X_OK) == 0) return true;
    for (const char *folder = getenv("PATH"); folder && *folder;) {
        size_t length = strcspn(folder, ":");
        snprintf(path, size, "%.*s/%s", (int)length, folder, name);
        if (access(path, X_OK) == 0) return true;
        folder += length + (folder[length] == ':');
    }
    errno = ENOENT;
    return false;
}

void root_run(const char *root, char **argv)
{
    char loader[PATH_SIZE], program[PATH_SIZE], libraries[2 * PATH_SIZE];
    const char *before = getenv("LD_LIBRARY_PATH");
    size_t count = 0;
    if (!program_find(program, sizeof program, root, argv[0])) {
        fprintf(stderr, "keel sim: %s: %s\n", argv[0], strerror(errno));
        return;
    }
    snprintf(loader, sizeof loader, "%s/loader", root);
    snprintf(libraries, sizeof libraries, "%s%s%s/libraries", before ? before : "",
             before ? ":" : "", root);
    while (argv[count]) count++;
    char **line = calloc(count + 4, sizeof *line);
    if (line) {
        line[0] = loader;
        line[1] = (char *)"--library-path";
        line[2] = libraries;
        line[3] = program;
        memcpy(line + 4, argv + 1, count * sizeof *line); // with the NULL
        fprintf(stderr, "keel sim: %s runs by the loader of %s; what it starts does not\n", argv[0],
                root);
        execv(loader, line);
    }
    fprintf(stderr, "keel sim: %s: %s\n", loader, strerror(errno));
    free(line);
}

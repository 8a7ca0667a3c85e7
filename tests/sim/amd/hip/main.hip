// SPDX-License-Identifier: Apache-2.0
// programs [NAME]: runs all the programs, or one, in this process; those that end their process run
// in one of their own. The last line is `N passed, N failed, N skipped`.
#include "programs.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>

static std::vector<program> &programs()
{
    static std::vector<program> all;
    return all;
}

program::program(const char *its_name, void (*function)(), bool it_dies)
    : name(its_name), run(function), dies(it_dies)
{
    programs().push_back(*this);
}

ending run_self(const std::vector<std::string> &arguments)
{
    std::vector<char *> line{const_cast<char *>("programs")};
    for (const std::string &argument : arguments)
        line.push_back(const_cast<char *>(argument.c_str()));
    line.push_back(nullptr);
    int ends[2];
    CHECK(pipe(ends) == 0);
    fflush(nullptr);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        dup2(ends[1], 1);
        dup2(ends[1], 2);
        close(ends[0]);
        close(ends[1]);
        execv("/proc/self/exe", line.data());
        _exit(127);
    }
    close(ends[1]);
    ending result{0, ""};
    char buffer[4096];
    for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) != 0;) {
        if (n < 0 && errno != EINTR) break;
        if (n > 0) result.output.append(buffer, (size_t)n);
    }
    close(ends[0]);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    result.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return result;
}

enum { PASSED, FAILED, SKIPPED, OUTCOMES };

static int run(const program &one)
{
    try {
        one.run();
        printf("%-16s passed\n", one.name);
        return PASSED;
    } catch (const failure &end) {
        printf("%-16s FAILED: %s\n", one.name, end.why.c_str());
        return FAILED;
    } catch (const skipped &end) {
        printf("%-16s skipped: %s\n", one.name, end.why.c_str());
        return SKIPPED;
    }
}

int main(int argc, char **argv)
{
    int counts[OUTCOMES] = {0};
    bool known = argc == 1;
    std::sort(programs().begin(), programs().end(),
              [](const program &a, const program &b) { return strcmp(a.name, b.name) < 0; });
    setvbuf(stdout, nullptr, _IOLBF, 0);
    for (const program &one : programs()) {
        bool named = argc > 1 && !strcmp(argv[1], one.name);
        known |= named;
        if (named || (argc == 1 && !one.dies)) counts[run(one)]++;
    }
    if (!known) {
        fprintf(stderr, "programs: no program is called %s\n", argv[1]);
        return 2;
    }
    printf("%d passed, %d failed, %d skipped\n", counts[PASSED], counts[FAILED], counts[SKIPPED]);
    return counts[FAILED] != 0;
}

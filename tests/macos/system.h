// SPDX-License-Identifier: Apache-2.0
// What the library uses of macOS's C library, declared here for compiling where Apple's headers are
// not: build.sh. Names and types are those of POSIX and of macOS's manual; values that macOS has
// otherwise than Linux stand as macOS has them, as far as they are public. Nothing of this is ever
// run.
#ifndef TESTS_MACOS_SYSTEM_H_
#define TESTS_MACOS_SYSTEM_H_

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHAR_BIT   8
#define INT_MAX    0x7fffffff
#define INT_MIN    (-INT_MAX - 1)
#define UINT_MAX   0xffffffffu
#define LONG_MAX   0x7fffffffffffffffL
#define ULONG_MAX  0xffffffffffffffffUL
#define LLONG_MAX  0x7fffffffffffffffLL
#define ULLONG_MAX 0xffffffffffffffffULL
#define PATH_MAX   1024
#define NAME_MAX   255
#define IOV_MAX    1024

typedef long ssize_t;
typedef int pid_t;
typedef unsigned uid_t, gid_t;
typedef unsigned short mode_t, nlink_t;
typedef int64_t off_t;
typedef uint64_t ino_t;
typedef int dev_t, blksize_t;
typedef int64_t blkcnt_t;
typedef long time_t, suseconds_t;
typedef unsigned long clock_t;

// errno.h
extern int *__error(void);
#define errno        (*__error())
#define EPERM        1
#define ENOENT       2
#define EINTR        4
#define EIO          5
#define EBADF        9
#define ECHILD       10
#define EDEADLK      11
#define ENOMEM       12
#define EACCES       13
#define EBUSY        16
#define EEXIST       17
#define ENODEV       19
#define ENOTDIR      20
#define EISDIR       21
#define EINVAL       22
#define ENFILE       23
#define EMFILE       24
#define ETXTBSY      26
#define EFBIG        27
#define ENOSPC       28
#define ESPIPE       29
#define EROFS        30
#define EPIPE        32
#define ERANGE       34
#define EAGAIN       35
#define EWOULDBLOCK  EAGAIN
#define ENOTSUP      45
#define ETIMEDOUT    60
#define ELOOP        62
#define ENAMETOOLONG 63
#define ENOTEMPTY    66
#define EDQUOT       69
#define ENOSYS       78
#define EOVERFLOW    84
#define ECANCELED    89
#define EBADMSG      94
#define EOPNOTSUPP   102

// string.h, strings.h
void *memcpy(void *, const void *, size_t);
void *memmove(void *, const void *, size_t);
void *memset(void *, int, size_t);
void *memchr(const void *, int, size_t);
int memcmp(const void *, const void *, size_t);
size_t strlen(const char *);
size_t strnlen(const char *, size_t);
int strcmp(const char *, const char *);
int strncmp(const char *, const char *, size_t);
int strcasecmp(const char *, const char *);
int strncasecmp(const char *, const char *, size_t);
char *strcpy(char *, const char *);
char *strncpy(char *, const char *, size_t);
char *strcat(char *, const char *);
char *strncat(char *, const char *, size_t);
char *strchr(const char *, int);
char *strrchr(const char *, int);
char *strstr(const char *, const char *);
char *strpbrk(const char *, const char *);
size_t strspn(const char *, const char *);
size_t strcspn(const char *, const char *);
char *strdup(const char *);
char *strndup(const char *, size_t);
char *strtok_r(char *, const char *, char **);
char *strsep(char **, const char *);
char *strerror(int);
int strerror_r(int, char *, size_t);

// stdlib.h
void *malloc(size_t) __attribute__((malloc));
void *calloc(size_t, size_t) __attribute__((malloc));
void *realloc(void *, size_t);
void free(void *);
int posix_memalign(void **, size_t, size_t);
void *aligned_alloc(size_t, size_t);
void abort(void) __attribute__((noreturn));
void exit(int) __attribute__((noreturn));
int atexit(void (*)(void));
char *getenv(const char *);
int setenv(const char *, const char *, int);
int unsetenv(const char *);
int atoi(const char *);
long strtol(const char *, char **, int);
unsigned long strtoul(const char *, char **, int);
long long strtoll(const char *, char **, int);
unsigned long long strtoull(const char *, char **, int);
double strtod(const char *, char **);
float strtof(const char *, char **);
void qsort(void *, size_t, size_t, int (*)(const void *, const void *));
void *bsearch(const void *, const void *, size_t, size_t, int (*)(const void *, const void *));
char *realpath(const char *, char *);
int mkstemp(char *);
char *mkdtemp(char *);
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1

// stdio.h
typedef struct macos_file FILE;
extern FILE *__stdinp, *__stdoutp, *__stderrp;
#define stdin                     __stdinp
#define stdout                    __stdoutp
#define stderr                    __stderrp
#define EOF                       (-1)
#define SEEK_SET                  0
#define SEEK_CUR                  1
#define SEEK_END                  2
#define BUFSIZ                    1024
#define MACOS_PRINTS(text, first) __attribute__((format(printf, text, first)))
int printf(const char *, ...) MACOS_PRINTS(1, 2);
int fprintf(FILE *, const char *, ...) MACOS_PRINTS(2, 3);
int dprintf(int, const char *, ...) MACOS_PRINTS(2, 3);
int snprintf(char *, size_t, const char *, ...) MACOS_PRINTS(3, 4);
int vsnprintf(char *, size_t, const char *, va_list) MACOS_PRINTS(3, 0);
int vfprintf(FILE *, const char *, va_list) MACOS_PRINTS(2, 0);
int vprintf(const char *, va_list) MACOS_PRINTS(1, 0);
int sscanf(const char *, const char *, ...) __attribute__((format(scanf, 2, 3)));
int fscanf(FILE *, const char *, ...) __attribute__((format(scanf, 2, 3)));
FILE *fopen(const char *, const char *);
FILE *fdopen(int, const char *);
FILE *open_memstream(char **, size_t *);
FILE *fmemopen(void *, size_t, const char *);
FILE *popen(const char *, const char *);
int pclose(FILE *);
FILE *tmpfile(void);
int fclose(FILE *);
int fflush(FILE *);
int fileno(FILE *);
int feof(FILE *);
int ferror(FILE *);
void rewind(FILE *);
int fseek(FILE *, long, int);
long ftell(FILE *);
int fseeko(FILE *, off_t, int);
off_t ftello(FILE *);
size_t fread(void *, size_t, size_t, FILE *);
size_t fwrite(const void *, size_t, size_t, FILE *);
char *fgets(char *, int, FILE *);
ssize_t getline(char **, size_t *, FILE *);
int fputs(const char *, FILE *);
int fputc(int, FILE *);
int putc(int, FILE *);
int putchar(int);
int puts(const char *);
int getc(FILE *);
int fgetc(FILE *);
void flockfile(FILE *);
void funlockfile(FILE *);
int rename(const char *, const char *);
int remove(const char *);
void perror(const char *);
int setvbuf(FILE *, char *, int, size_t);

// ctype.h, assert.h, math.h, inttypes.h
int isalpha(int), isdigit(int), isalnum(int), isspace(int), isprint(int), isxdigit(int);
int isupper(int), islower(int), ispunct(int), tolower(int), toupper(int);
void __assert_rtn(const char *, const char *, int, const char *) __attribute__((noreturn));
#ifdef NDEBUG
#define assert(truth) ((void)0)
#else
#define assert(truth) ((truth) ? (void)0 : __assert_rtn(__func__, __FILE__, __LINE__, #truth))
#endif
#define static_assert _Static_assert
double sqrt(double), fabs(double), floor(double), ceil(double), log(double), exp(double);
double pow(double, double), fmod(double, double), round(double), trunc(double), ldexp(double, int);
double frexp(double, int *), fma(double, double, double), log2(double);
float sqrtf(float), fabsf(float), floorf(float), ceilf(float), fmaf(float, float, float);
float ldexpf(float, int);
long lround(double);
#define isnan(x)    __builtin_isnan(x)
#define isinf(x)    __builtin_isinf(x)
#define isfinite(x) __builtin_isfinite(x)
#define signbit(x)  __builtin_signbit(x)
#define NAN         __builtin_nanf("")
#define INFINITY    __builtin_inff()
#define HUGE_VAL    __builtin_huge_val()
#define PRIu64      "llu"
#define PRId64      "lld"
#define PRIx64      "llx"
#define PRIX64      "llX"
#define PRIu32      "u"
#define PRId32      "d"
#define PRIx32      "x"
#define SCNu64      "llu"
#define SCNx64      "llx"
#define SCNxPTR     "lx"
#define PRIxPTR     "lx"

// unistd.h, fcntl.h
#define STDIN_FILENO         0
#define STDOUT_FILENO        1
#define STDERR_FILENO        2
#define O_RDONLY             0
#define O_WRONLY             1
#define O_RDWR               2
#define O_ACCMODE            3
#define O_NONBLOCK           0x4
#define O_APPEND             0x8
#define O_CREAT              0x200
#define O_TRUNC              0x400
#define O_EXCL               0x800
#define O_NOFOLLOW           0x100
#define O_DIRECTORY          0x100000
#define O_CLOEXEC            0x1000000
#define O_NOCTTY             0x20000
#define F_DUPFD              0
#define F_GETFD              1
#define F_SETFD              2
#define F_GETFL              3
#define F_SETFL              4
#define F_DUPFD_CLOEXEC      67
#define FD_CLOEXEC           1
#define R_OK                 4
#define W_OK                 2
#define X_OK                 1
#define F_OK                 0
#define AT_FDCWD             (-2)
#define _SC_PAGESIZE         29
#define _SC_NPROCESSORS_CONF 57
#define _SC_NPROCESSORS_ONLN 58
#define _SC_PHYS_PAGES       200
#define _SC_OPEN_MAX         5
#define _SC_IOV_MAX          56
int open(const char *, int, ...);
int openat(int, const char *, int, ...);
int fcntl(int, int, ...);
int close(int);
int pipe(int[2]);
int dup(int);
int dup2(int, int);
ssize_t read(int, void *, size_t);
ssize_t write(int, const void *, size_t);
ssize_t pread(int, void *, size_t, off_t);
ssize_t pwrite(int, const void *, size_t, off_t);
off_t lseek(int, off_t, int);
int ftruncate(int, off_t);
int fsync(int);
int access(const char *, int);
int unlink(const char *);
int rmdir(const char *);
int chdir(const char *);
char *getcwd(char *, size_t);
ssize_t readlink(const char *, char *, size_t);
int symlink(const char *, const char *);
int link(const char *, const char *);
int isatty(int);
int gethostname(char *, size_t);
pid_t getpid(void), getppid(void), fork(void), setsid(void);
uid_t getuid(void), geteuid(void);
gid_t getgid(void), getegid(void);
int execv(const char *, char *const[]);
int execvp(const char *, char *const[]);
void _exit(int) __attribute__((noreturn));
unsigned alarm(unsigned);
unsigned sleep(unsigned);
int usleep(unsigned);
long sysconf(int);
extern char **environ;

// time.h, sys/time.h
struct timespec {
    time_t tv_sec;
    long tv_nsec;
};
struct timeval {
    time_t tv_sec;
    int tv_usec;
};
struct tm {
    int tm_sec, tm_min, tm_hour, tm_mday, tm_mon, tm_year, tm_wday, tm_yday, tm_isdst;
    long tm_gmtoff;
    char *tm_zone;
};
typedef unsigned clockid_t;
#define CLOCK_REALTIME   0
#define CLOCK_MONOTONIC  6
#define CLOCK_UPTIME_RAW 8
int clock_gettime(clockid_t, struct timespec *);
int nanosleep(const struct timespec *, struct timespec *);
int gettimeofday(struct timeval *, void *);
time_t time(time_t *);
struct tm *localtime_r(const time_t *, struct tm *);
struct tm *gmtime_r(const time_t *, struct tm *);
size_t strftime(char *, size_t, const char *, const struct tm *);

// sys/stat.h, dirent.h, sys/mman.h, sys/file.h
struct stat {
    dev_t st_dev;
    mode_t st_mode;
    nlink_t st_nlink;
    ino_t st_ino;
    uid_t st_uid;
    gid_t st_gid;
    dev_t st_rdev;
    struct timespec st_atimespec, st_mtimespec, st_ctimespec, st_birthtimespec;
    off_t st_size;
    blkcnt_t st_blocks;
    blksize_t st_blksize;
    uint32_t st_flags, st_gen;
    int32_t st_lspare;
    int64_t st_qspare[2];
};
#define S_IFMT      0170000
#define S_ISREG(m)  (((m) & S_IFMT) == 0100000)
#define S_ISDIR(m)  (((m) & S_IFMT) == 0040000)
#define S_ISLNK(m)  (((m) & S_IFMT) == 0120000)
#define S_ISFIFO(m) (((m) & S_IFMT) == 0010000)
#define S_ISCHR(m)  (((m) & S_IFMT) == 0020000)
#define S_ISBLK(m)  (((m) & S_IFMT) == 0060000)
#define S_ISSOCK(m) (((m) & S_IFMT) == 0140000)
#define S_IRWXU     0700
int stat(const char *, struct stat *);
int fstat(int, struct stat *);
int lstat(const char *, struct stat *);
int mkdir(const char *, mode_t);
int chmod(const char *, mode_t);
int fchmod(int, mode_t);
typedef struct macos_dir DIR;
struct dirent {
    uint64_t d_ino, d_seekoff;
    uint16_t d_reclen, d_namlen;
    uint8_t d_type;
    char d_name[1024];
};
#define DT_DIR 4
#define DT_REG 8
DIR *opendir(const char *);
struct dirent *readdir(DIR *);
int closedir(DIR *);
#define PROT_NONE     0
#define PROT_READ     1
#define PROT_WRITE    2
#define PROT_EXEC     4
#define MAP_SHARED    1
#define MAP_PRIVATE   2
#define MAP_FIXED     0x10
#define MAP_NORESERVE 0x40
#define MAP_ANON      0x1000
#define MAP_ANONYMOUS MAP_ANON
#define MAP_FAILED    ((void *)-1)
#define MADV_DONTNEED 4
#define MS_ASYNC      1
#define MS_SYNC       0x10
void *mmap(void *, size_t, int, int, int, off_t);
int munmap(void *, size_t);
int mprotect(void *, size_t, int);
int madvise(void *, size_t, int);
int msync(void *, size_t, int);
int shm_open(const char *, int, ...);
int shm_unlink(const char *);
#define LOCK_SH 1
#define LOCK_EX 2
#define LOCK_NB 4
#define LOCK_UN 8
int flock(int, int);

// signal.h, sys/wait.h, spawn.h, poll.h, sched.h, sys/resource.h
typedef uint32_t sigset_t;
typedef struct macos_siginfo {
    int si_signo, si_errno, si_code;
    pid_t si_pid;
    uid_t si_uid;
    int si_status;
    void *si_addr;
    union {
        int sival_int;
        void *sival_ptr;
    } si_value;
    long si_band;
    unsigned long reserved[7];
} siginfo_t;
struct sigaction {
    union {
        void (*sa_handler)(int);
        void (*sa_sigaction)(int, siginfo_t *, void *);
    };
    sigset_t sa_mask;
    int sa_flags;
};
typedef struct macos_stack {
    void *ss_sp;
    size_t ss_size;
    int ss_flags;
} stack_t;
#define SIG_DFL     ((void (*)(int))0)
#define SIG_IGN     ((void (*)(int))1)
#define SIGHUP      1
#define SIGINT      2
#define SIGQUIT     3
#define SIGILL      4
#define SIGTRAP     5
#define SIGABRT     6
#define SIGFPE      8
#define SIGKILL     9
#define SIGBUS      10
#define SIGSEGV     11
#define SIGSYS      12
#define SIGPIPE     13
#define SIGALRM     14
#define SIGTERM     15
#define SIGCHLD     20
#define SIG_BLOCK   1
#define SIG_UNBLOCK 2
#define SIG_SETMASK 3
#define SA_ONSTACK  1
#define SA_RESTART  2
#define SA_NODEFER  0x10
#define SA_SIGINFO  0x40
#define SS_DISABLE  4
int sigaction(int, const struct sigaction *, struct sigaction *);
int sigprocmask(int, const sigset_t *, sigset_t *);
int pthread_sigmask(int, const sigset_t *, sigset_t *);
int sigaltstack(const stack_t *, stack_t *);
int sigemptyset(sigset_t *);
int sigfillset(sigset_t *);
int sigaddset(sigset_t *, int);
int sigdelset(sigset_t *, int);
int sigwait(const sigset_t *, int *);
int kill(pid_t, int);
int raise(int);
void (*signal(int, void (*)(int)))(int);
char *strsignal(int);
#define WNOHANG        1
#define WIFEXITED(s)   (((s) & 0177) == 0)
#define WEXITSTATUS(s) ((s) >> 8 & 0xff)
#define WIFSIGNALED(s) (((s) & 0177) != 0 && ((s) & 0177) != 0177)
#define WTERMSIG(s)    ((s) & 0177)
pid_t waitpid(pid_t, int *, int);
typedef void *posix_spawn_file_actions_t, *posix_spawnattr_t;
int posix_spawn(pid_t *, const char *, const posix_spawn_file_actions_t *,
                const posix_spawnattr_t *, char *const[], char *const[]);
int posix_spawnp(pid_t *, const char *, const posix_spawn_file_actions_t *,
                 const posix_spawnattr_t *, char *const[], char *const[]);
int posix_spawn_file_actions_init(posix_spawn_file_actions_t *);
int posix_spawn_file_actions_destroy(posix_spawn_file_actions_t *);
int posix_spawn_file_actions_adddup2(posix_spawn_file_actions_t *, int, int);
int posix_spawn_file_actions_addclose(posix_spawn_file_actions_t *, int);
int posix_spawn_file_actions_addopen(posix_spawn_file_actions_t *, int, const char *, int, mode_t);
struct pollfd {
    int fd;
    short events, revents;
};
#define POLLIN  1
#define POLLOUT 4
#define POLLERR 8
#define POLLHUP 0x10
int poll(struct pollfd *, unsigned, int);
int sched_yield(void);
struct rlimit {
    uint64_t rlim_cur, rlim_max;
};
struct rusage {
    struct timeval ru_utime, ru_stime;
    long ru_maxrss, ru_rest[13];
};
#define RUSAGE_SELF     0
#define RUSAGE_CHILDREN (-1)
#define RLIMIT_FSIZE    1
#define RLIMIT_CORE     4
#define RLIMIT_AS       5
#define RLIM_INFINITY   0x7fffffffffffffffULL
#define RLIMIT_NOFILE   8
int getrlimit(int, struct rlimit *);
int setrlimit(int, const struct rlimit *);
int getrusage(int, struct rusage *);

// pthread.h
typedef struct macos_thread *pthread_t;
typedef unsigned long pthread_key_t;
#define MACOS_OPAQUE(name, size)                                                                   \
    typedef struct {                                                                               \
        long sign;                                                                                 \
        char opaque[size];                                                                         \
    } name
MACOS_OPAQUE(pthread_mutex_t, 56);
MACOS_OPAQUE(pthread_mutexattr_t, 8);
MACOS_OPAQUE(pthread_cond_t, 40);
MACOS_OPAQUE(pthread_condattr_t, 8);
MACOS_OPAQUE(pthread_rwlock_t, 192);
MACOS_OPAQUE(pthread_attr_t, 56);
MACOS_OPAQUE(pthread_once_t, 8);
#define PTHREAD_MUTEX_INITIALIZER  {0x32AAABA7, {0}}
#define PTHREAD_COND_INITIALIZER   {0x3CB0B1BB, {0}}
#define PTHREAD_RWLOCK_INITIALIZER {0x2DA8B3B4, {0}}
#define PTHREAD_ONCE_INIT          {0x30B1BCBA, {0}}
#define PTHREAD_CREATE_DETACHED    2
#define PTHREAD_PROCESS_SHARED     1
int pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
int pthread_join(pthread_t, void **);
int pthread_detach(pthread_t);
pthread_t pthread_self(void);
int pthread_equal(pthread_t, pthread_t);
int pthread_setname_np(const char *);
int pthread_atfork(void (*)(void), void (*)(void), void (*)(void));
int pthread_once(pthread_once_t *, void (*)(void));
int pthread_attr_init(pthread_attr_t *);
int pthread_attr_destroy(pthread_attr_t *);
int pthread_attr_getstacksize(const pthread_attr_t *, size_t *);
int pthread_attr_setstacksize(pthread_attr_t *, size_t);
int pthread_attr_setdetachstate(pthread_attr_t *, int);
int pthread_mutex_init(pthread_mutex_t *, const pthread_mutexattr_t *);
int pthread_mutex_destroy(pthread_mutex_t *);
int pthread_mutex_lock(pthread_mutex_t *);
int pthread_mutex_trylock(pthread_mutex_t *);
int pthread_mutex_unlock(pthread_mutex_t *);
int pthread_cond_init(pthread_cond_t *, const pthread_condattr_t *);
int pthread_cond_destroy(pthread_cond_t *);
int pthread_cond_wait(pthread_cond_t *, pthread_mutex_t *);
int pthread_cond_timedwait(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
int pthread_cond_timedwait_relative_np(pthread_cond_t *, pthread_mutex_t *,
                                       const struct timespec *);
int pthread_cond_signal(pthread_cond_t *);
int pthread_cond_broadcast(pthread_cond_t *);
int pthread_key_create(pthread_key_t *, void (*)(void *));
int pthread_key_delete(pthread_key_t);
void *pthread_getspecific(pthread_key_t);
int pthread_setspecific(pthread_key_t, const void *);

// dlfcn.h
#define RTLD_LAZY     1
#define RTLD_NOW      2
#define RTLD_LOCAL    4
#define RTLD_GLOBAL   8
#define RTLD_NOLOAD   0x10
#define RTLD_NODELETE 0x80
#define RTLD_NEXT     ((void *)-1)
#define RTLD_DEFAULT  ((void *)-2)
typedef struct macos_dl_info {
    const char *dli_fname;
    void *dli_fbase;
    const char *dli_sname;
    void *dli_saddr;
} Dl_info;
void *dlopen(const char *, int);
void *dlsym(void *, const char *);
int dlclose(void *);
char *dlerror(void);
int dladdr(const void *, Dl_info *);

#endif

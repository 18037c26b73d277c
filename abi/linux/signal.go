package linux

// Numbers and flags of signals.
//
// headers: stddef.h linux/signal.h
const (
	MINSIGSTKSZ     = 2048
	SA_NODEFER      = 0x40000000
	SA_ONSTACK      = 0x8000000
	SA_RESETHAND    = 0x80000000
	SA_RESTORER     = 0x4000000
	SIGBUS          = 7
	SIGCHLD         = 17
	SIGCONT         = 18
	SIGEV_SIGNAL    = 0
	SIGEV_NONE      = 1
	SIGEV_THREAD    = 2
	SIGEV_THREAD_ID = 4
	SIGFPE          = 8
	SIGHUP          = 1
	SIGILL          = 4
	SIGINT          = 2
	SIGKILL         = 9
	SIGPIPE         = 13
	SIGPROF         = 27
	SIGQUIT         = 3
	SIGSEGV         = 11
	SIGSTOP         = 19
	SIGSYS          = 31
	SIGTERM         = 15
	SIGTRAP         = 5
	SIGTSTP         = 20
	SIGVTALRM       = 26
	SIGTTIN         = 21
	SIGTTOU         = 22
	SIGURG          = 23
	SIGWINCH        = 28

	SIGALRM       = 14
	SIGABRT       = 6
	SIG_BLOCK     = 0
	SIG_SETMASK   = 2
	SIG_UNBLOCK   = 1
	SI_KERNEL     = 0x80
	SI_USER       = 0
	SS_AUTODISARM = -0x80000000 // bit 31 of an int32
	SS_DISABLE    = 2
	SS_ONSTACK    = 1
)

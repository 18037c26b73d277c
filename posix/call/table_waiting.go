package call

import "loam/abi/linux"

// Rows of Table: calls that wait for events, such as poll and epoll_wait.
var waitingRows = []Row{
	{linux.SYS_MQ_OPEN, "mq_open", "siip", Personality, Unaffected, noMqueueFiles, 0, mqOpen},
	{linux.SYS_MQ_UNLINK, "mq_unlink", "s", Personality, Unaffected, "", 0, mqUnlink},
	{linux.SYS_MQ_TIMEDSEND, "mq_timedsend", "fpnip", Personality, Restarts, "", 0, mqTimedsend},
	{linux.SYS_MQ_TIMEDRECEIVE, "mq_timedreceive", "fpnpp", Personality, Restarts, "", 0, mqTimedreceive},
	{linux.SYS_MQ_NOTIFY, "mq_notify", "fp", Personality, Unaffected, "", 0, mqNotify},
	{linux.SYS_MQ_GETSETATTR, "mq_getsetattr", "fpp", Personality, Unaffected, "", 0, mqGetsetattr},
	{linux.SYS_POLL, "poll", "pni", Personality | Runtime, Fails, noSignalMask, 0, poll},
	{linux.SYS_PPOLL, "ppoll", "pnppn", Personality | Runtime, Fails, noSignalMask, 0, ppoll},
	{linux.SYS_SELECT, "select", "npppp", Personality, Fails, noSignalMask, 0, selectCall},
	{linux.SYS_PSELECT6, "pselect6", "nppppp", Personality, Fails, noSignalMask, 0, pselect6},
	{linux.SYS_EPOLL_CREATE, "epoll_create", "i", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return c.epollCreate(a)
	}},
	{linux.SYS_EPOLL_CREATE1, "epoll_create1", "i", Personality | Runtime | Core, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return result(c.Process.EpollCreate(number(a.A1)))
	}},
	{linux.SYS_EPOLL_CTL, "epoll_ctl", "fifp", Personality | Runtime | Core, Unaffected, "", 0, epollCtl},
	{linux.SYS_EPOLL_WAIT, "epoll_wait", "fpni", Personality, Fails, noSignalMask, 0, epollWait},
	{linux.SYS_EPOLL_PWAIT, "epoll_pwait", "fpnipn", Personality | Runtime, Fails, noSignalMask, 0, epollPwait},
	{linux.SYS_EPOLL_PWAIT2, "epoll_pwait2", "fpnppn", Personality, Fails, noSignalMask, 0, epollPwait2},
	{linux.SYS_EVENTFD, "eventfd", "i", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return result(c.Process.EventFD(uint32(a.A1), 0))
	}},
	{linux.SYS_EVENTFD2, "eventfd2", "ii", Personality | Runtime | Core, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return result(c.Process.EventFD(uint32(a.A1), number(a.A2)))
	}},
	{linux.SYS_TIMERFD_CREATE, "timerfd_create", "ii", Personality, Unaffected, ofClocks, 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return result(c.Process.TimerFDCreate(number(a.A1), number(a.A2)))
	}},
	{linux.SYS_TIMERFD_SETTIME, "timerfd_settime", "fipp", Personality, Unaffected, noCancel, 0, timerfdSettime},
	{linux.SYS_TIMERFD_GETTIME, "timerfd_gettime", "fp", Personality, Unaffected, "", 0, timerfdGettime},
	{linux.SYS_FUTEX, "futex", "piippi", Host | Core | AtOnce, Fails, "", 0, nil},
	{linux.SYS_NANOSLEEP, "nanosleep", "pp", Host | Core | AtOnce, Fails, "", 0, nil},
	{linux.SYS_CLOCK_NANOSLEEP, "clock_nanosleep", "iipp", Host | Core, Fails, "", 0, nil},
	{linux.SYS_PAUSE, "pause", "", Host | Core, Fails, "", 0, nil},
	{linux.SYS_RT_SIGTIMEDWAIT, "rt_sigtimedwait", "pppn", Host | Core, Fails, "", 0, nil},
}

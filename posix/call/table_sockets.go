package call

import "loam/abi/linux"

// Rows of Table: sockets.
var socketsRows = []Row{
	{linux.SYS_SOCKET, "socket", "iii", Personality, Unaffected, fewSockets, 0, socketCall},
	{linux.SYS_SOCKETPAIR, "socketpair", "iiip", Personality, Unaffected, "", 0, socketpair},
	{linux.SYS_CONNECT, "connect", "fpn", Personality, Restarts, "", 0, connect},
	{linux.SYS_ACCEPT, "accept", "fpp", Personality, Restarts, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return c.accept(a, 0)
	}},
	{linux.SYS_ACCEPT4, "accept4", "fppi", Personality, Restarts, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return c.accept(a, number(a.A4))
	}},
	{linux.SYS_SENDTO, "sendto", "fpnipn", Personality | Runtime, Restarts, "", 0, sendto},
	{linux.SYS_RECVFROM, "recvfrom", "fpnipp", Personality | Runtime, Restarts, "", 0, recvfrom},
	{linux.SYS_SENDMSG, "sendmsg", "fpi", Personality | Runtime, Restarts, fewControls, 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return c.sendMessage(fd(a.A1), a.A2, number(a.A3))
	}},
	{linux.SYS_RECVMSG, "recvmsg", "fpi", Personality | Runtime, Restarts, fewControls, 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return c.receiveMessage(fd(a.A1), a.A2, number(a.A3))
	}},
	{linux.SYS_SENDMMSG, "sendmmsg", "fpni", Personality, Restarts, fewControls, 0, sendmmsg},
	{linux.SYS_RECVMMSG, "recvmmsg", "fpnip", Personality, Restarts, fewControls, 0, recvmmsg},
	{linux.SYS_SHUTDOWN, "shutdown", "fi", Personality | Runtime, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return fail(c.Process.Shutdown(fd(a.A1), number(a.A2)))
	}},
	{linux.SYS_BIND, "bind", "fpn", Personality, Unaffected, "", 0, bind},
	{linux.SYS_LISTEN, "listen", "fi", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return fail(c.Process.Listen(fd(a.A1), number(a.A2)))
	}},
	{linux.SYS_GETSOCKNAME, "getsockname", "fpp", Personality, Unaffected, "", 0, getsockname},
	{linux.SYS_GETPEERNAME, "getpeername", "fpp", Personality, Unaffected, "", 0, getpeername},
	{linux.SYS_SETSOCKOPT, "setsockopt", "fiipn", Personality | Runtime, Unaffected, fewOptions, 0, setsockopt},
	{linux.SYS_GETSOCKOPT, "getsockopt", "fiipp", Personality | Runtime, Unaffected, fewOptions, 0, getsockopt},
}

package unixsock

import "syscall"

const sysSendmmsg = syscall.SYS_SENDMMSG

func setIovlen(m *syscall.Msghdr, n int) { m.Iovlen = uint64(n) }

package unixsock

import "syscall"

// sysSendmmsg is missing in package syscall on this machine.
const sysSendmmsg = 307

func setIovlen(m *syscall.Msghdr, n int) { m.Iovlen = uint64(n) }

package posix

import (
	"loam/abi/linux"
	"loam/fs"
)

// Kernel serves the calls that concern neither files nor the network: memory, signals and limits. Linux
// implements it for a program that runs as a process, package kernel in a virtual machine.
type Kernel interface {
	// Call makes a system call. No argument may be an address that the call reads or writes.
	Call(number int, a1, a2, a3, a4, a5, a6 uint64) (uint64, Errno)
	// Reserve reserves a range of addresses: see fs.Reserve.
	Reserve(size int64) (fs.Memory, error)
	// Limit implements prlimit(2); set and get may be nil.
	Limit(pid, resource int, set, get *linux.Rlimit) Errno
	// NameThread and ThreadName set and return the name of the calling thread (PR_SET_NAME).
	NameThread(name string) Errno
	ThreadName() (string, Errno)
	// NameMemory names the mappings in a range (PR_SET_VMA). An empty name removes their names.
	NameMemory(kind int, addr, length uint64, name string) Errno
	// Names returns the result of uname(2) on the underlying system.
	Names() linux.Utsname
}

// Kernel returns the kernel that the process was created with, or nil.
func (p *Process) Kernel() Kernel { return p.kernel }

// PID returns the process ID.
func (p *Process) PID() int { return int(p.credentials.PID) }

// IsSocket returns 0 if fd is a socket. Errors: EBADF, ENOTSOCK.
func (p *Process) IsSocket(fd int) Errno {
	_, _, errno := p.socket(fd)
	return errno
}

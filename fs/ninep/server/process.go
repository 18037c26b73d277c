package server

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"loam/fs/ninep/ring"
)

// The server as a process: Start runs this executable again under the name processName. The process
// has no privileges, even if the caller is root, and ends when the client closes its end of the socket.

// memoryVariable is the environment variable that is set if the process communicates in memory.
const memoryVariable = "LOAM_FOLDER_MEMORY"

// processName is the name (argv[0]) under which this executable is the server.
const processName = "loam: folder"

// Descriptors that the server's process inherits.
const (
	processSocket = 3
	processFolder = 4
	processMemory = 5
)

func init() {
	if len(os.Args) == 1 && os.Args[0] == processName {
		runProcess()
	}
}

// runProcess does not return.
func runProcess() {
	syscall.Umask(0) // the client applies its own umask
	c, err := connection()
	if err == nil {
		err = Serve(c, os.NewFile(processFolder, "folder"), Config{FIDs: mostFIDs()})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "loam: the server of a folder has ended:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// connection returns the connection to the client.
func connection() (io.ReadWriter, error) {
	s := &socket{fd: processSocket}
	if os.Getenv(memoryVariable) == "" {
		return &patient{source: s}, nil
	}
	memory, err := unix.Mmap(processMemory, 0, ring.Size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	unix.Close(processMemory)
	return &patient{source: ring.New(memory, s, true)}, nil
}

// mostFIDs returns how many FIDs the limit on open files allows: a FID has up to two descriptors.
func mostFIDs() int {
	const most, own = 16384, 64
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur >= 2*most+own {
		return most
	}
	return max((int(limit.Cur)-own)/2, 16)
}

// ErrRoot is returned by Start for a caller that is root and cannot give up root's privileges.
var ErrRoot = errors.New("root's privileges cannot be given up")

// Client is the client's end of a connection to a server.
type Client struct {
	Socket *os.File
	Memory *os.File // memory of ring.Size bytes in which the client is the first process of package ring; nil: none
}

// close closes the files.
func (c *Client) close() {
	c.Socket.Close()
	if c.Memory != nil {
		c.Memory.Close()
	}
}

// Start starts a server of the folder that f is open on. With memory, client and server communicate in memory, and the
// socket only wakes them. The server acts as the caller; if the caller is root, as the user and the groups of the
// folder's owner, without capabilities.
func Start(f *os.File, memory bool) (_ *Client, err error) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	ours, theirs := &Client{Socket: os.NewFile(uintptr(pair[0]), "folder")}, os.NewFile(uintptr(pair[1]), "client")
	defer theirs.Close()
	defer func() {
		if err != nil {
			ours.close()
		}
	}()
	for _, fd := range pair { // the largest buffers that the system allows
		syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_SNDBUF, socketRoom)
	}
	c := exec.Command(executable())
	c.Args, c.Env, c.Dir = []string{processName}, []string{"GOGC=200"}, "/"
	c.ExtraFiles = []*os.File{theirs, f}
	if memory {
		if ours.Memory, err = newMemory(); err != nil {
			return nil, err
		}
		c.ExtraFiles = append(c.ExtraFiles, ours.Memory)
		c.Env = append(c.Env, memoryVariable+"=1")
	}
	c.Stderr = os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // signals of the terminal are for the program, not for the server
	if os.Geteuid() == 0 {
		if c.SysProcAttr.Credential, err = ownerOf(f); err != nil {
			return nil, err
		}
	}
	if err := startBounded(c); err != nil {
		return nil, err
	}
	go c.Wait() // the server ends when the client does
	return ours, nil
}

// newMemory returns memory for a connection, whose size cannot change.
func newMemory() (*os.File, error) {
	fd, err := unix.MemfdCreate("folder", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), "folder")
	if err := f.Truncate(ring.Size); err != nil {
		f.Close()
		return nil, err
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL); err != nil {
		f.Close()
		return nil, os.NewSyscallError("fcntl", err)
	}
	return f, nil
}

// socketRoom is the size of the buffers of a socket, in bytes.
const socketRoom = 1 << 20

// executable returns the file of this executable. If /proc is not accessible, it is found by the
// name under which the caller was started.
func executable() string {
	const self = "/proc/self/exe"
	if _, err := os.Stat(self); err != nil {
		return os.Args[0]
	}
	return self
}

// ownerOf returns the user and the groups of a folder's owner.
func ownerOf(f *os.File) (*syscall.Credential, error) {
	var st syscall.Stat_t
	if err := syscall.Fstat(int(f.Fd()), &st); err != nil {
		return nil, os.NewSyscallError("fstat", err)
	}
	c := &syscall.Credential{Uid: st.Uid, Gid: st.Gid}
	u, err := user.LookupId(strconv.Itoa(int(st.Uid)))
	if err != nil {
		return c, nil // a user without a name has the folder's group
	}
	if gid, err := strconv.ParseUint(u.Gid, 10, 32); err == nil {
		c.Gid = uint32(gid)
	}
	ids, err := u.GroupIds()
	if err != nil {
		return c, nil
	}
	for _, id := range ids {
		if gid, err := strconv.ParseUint(id, 10, 32); err == nil {
			c.Groups = append(c.Groups, uint32(gid))
		}
	}
	return c, nil
}

// startBounded starts a command that cannot gain privileges, and has none of root's. The bounding
// set of capabilities belongs to a thread. Therefore a separate thread starts the command, and then
// ends.
func startBounded(c *exec.Cmd) error {
	result := make(chan error, 1) // sent by the thread, once; received here
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		err := bound()
		if err == nil {
			err = c.Start()
		}
		result <- err
	}()
	return <-result
}

// bound removes privileges from programs that the calling thread executes later.
func bound() error {
	if os.Geteuid() == 0 {
		for capability := uintptr(0); ; capability++ {
			err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0)
			if err == unix.EINVAL && capability > 0 {
				break // there are no more capabilities
			}
			if err != nil {
				return fmt.Errorf("%w: %w", ErrRoot, os.NewSyscallError("prctl", err))
			}
		}
	}
	return os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
}

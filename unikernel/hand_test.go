package unikernel

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"loam/internal/freeport"
	"loam/usernet"
)

// Environment variables for the tested loam process: the published ports as a list of HOST:GUEST, and whether
// connections are relayed.
const (
	withPorts = "LOAM_TEST_PORTS"
	withRelay = "LOAM_TEST_RELAY"
)

// testForwards returns the forwards that withPorts lists.
func testForwards() (list []usernet.Forward) {
	for _, word := range strings.Fields(os.Getenv(withPorts)) {
		host, guest, _ := strings.Cut(word, ":")
		h, _ := strconv.ParseUint(host, 10, 16)
		g, _ := strconv.ParseUint(guest, 10, 16)
		list = append(list, usernet.Forward{
			Proto: "tcp", Host: netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(h)), Guest: netip.AddrPortFrom(netip.Addr{}, uint16(g)),
		})
	}
	return list
}

// handPatience bounds the wait for events that must happen. It does not affect results.
const handPatience = 30 * time.Second

// served is a run of the program "published": on Loam with connections handed over, on Loam with connections relayed,
// or on Linux.
type served struct {
	t     *testing.T
	where string
	cmd   *exec.Cmd
	lines *bufio.Scanner // lines of the program's output
	ports [4]string      // the program's ports, as the host sees them
	guest [4]string      // the same ports as the program sees them, as addresses HOST:PORT
}

// Systems and modes that the program is tested in.
const (
	handedOver = "handed over"
	relayed    = "relayed"
	onLinux    = "on Linux"
)

func serve(t *testing.T, where string) *served {
	t.Helper()
	s := &served{t: t, where: where}
	for i := range s.ports {
		at, err := freeport.Next()
		if err != nil {
			t.Fatal(err)
		}
		s.ports[i] = strconv.Itoa(int(at.Port()))
		s.guest[i] = strconv.Itoa(8000 + i)
	}
	if where == onLinux {
		s.guest = s.ports
		s.cmd = exec.Command(onThisHost(t, "published"), s.guest[:]...)
		// The Go runtime preempts threads by a signal. On Linux it ends a recv with MSG_WAITALL early, with part of the bytes.
		s.cmd.Env = append(os.Environ(), "GODEBUG=asyncpreemptoff=1")
	} else {
		s.cmd = guestCommand(UserNetwork, "published", s.guest[:]...)
		var ports []string
		for i := range s.ports {
			ports = append(ports, s.ports[i]+":"+s.guest[i])
		}
		// A shared folder adds open descriptors below the numbers of connections, so the test covers that case too.
		s.cmd.Env = append(s.cmd.Env, withPorts+"="+strings.Join(ports, " "), withVolume+"="+t.TempDir())
		if where == relayed {
			s.cmd.Env = append(s.cmd.Env, withRelay+"=1")
		}
	}
	s.cmd.Stderr = os.Stderr
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.cmd.Process.Signal(syscall.SIGTERM)
		s.cmd.Wait()
	})
	s.lines = bufio.NewScanner(out)
	s.wantLine("ready")
	return s
}

// onThisHost builds a program of testdata for Linux and returns the path of the executable.
func onThisHost(t *testing.T, program string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), program)
	cmd := exec.Command("go", "build", "-o", file, "./"+program)
	cmd.Dir = "testdata/guest"
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return file
}

func (s *served) wantLine(want string) {
	s.t.Helper()
	if !s.lines.Scan() || s.lines.Text() != want {
		s.t.Fatalf("the program says %q, %v; want %q", s.lines.Text(), s.lines.Err(), want)
	}
}

// dial connects to a port and asks the program for an action.
func (s *served) dial(port int, ask string) *net.TCPConn {
	s.t.Helper()
	c, err := net.Dial("tcp", "127.0.0.1:"+s.ports[port])
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(handPatience))
	if ask != "" {
		s.write(c, ask+"\n")
	}
	return c.(*net.TCPConn)
}

func (s *served) write(c net.Conn, text string) {
	s.t.Helper()
	if _, err := c.Write([]byte(text)); err != nil {
		s.t.Errorf("write: %v", err)
	}
}

// want reads exactly text from a connection, and fails the test on anything else.
func (s *served) want(c net.Conn, text string) {
	s.t.Helper()
	b := make([]byte, len(text))
	n, err := io.ReadFull(c, b)
	if err != nil || string(b) != text {
		s.t.Errorf("read %.80q, %v; want %.80q", b[:n], err, text)
	}
}

// wantAll reads a connection until end of file, and compares everything with text.
func (s *served) wantAll(c net.Conn, text string) {
	s.t.Helper()
	b, err := io.ReadAll(c)
	if err != nil || string(b) != text {
		s.t.Errorf("read %.80q (%d bytes), %v; want %.80q", b, len(b), err, text)
	}
}

func (s *served) wantReset(c net.Conn) {
	s.t.Helper()
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		s.t.Errorf("the client sees %v, not a reset", err)
	}
}

// A program behaves the same with a handed-over connection, with a relayed one, and on Linux.
func TestPublished(t *testing.T) {
	for _, where := range []string{handedOver, relayed, onLinux} {
		t.Run(where, func(t *testing.T) {
			s := serve(t, where)
			for name, test := range publishedTests {
				t.Run(name, func(t *testing.T) {
					one := *s
					one.t = t
					test(&one)
				})
			}
			s.dial(0, "exit")
			for s.lines.Scan() {
				t.Errorf("the program says %q", s.lines.Text())
			}
		})
	}
}

var publishedTests = map[string]func(*served){
	"echo": func(s *served) {
		c := s.dial(0, "echo")
		text := strings.Repeat("0123456789", 200_000)
		go func() {
			io.WriteString(c, text)
			c.CloseWrite()
		}()
		s.wantAll(c, text)
	},
	"addresses": func(s *served) {
		want := "10.0.2.15 8000 10.0.2.2"
		if s.where == onLinux {
			want = "127.0.0.1 " + s.ports[0] + " 127.0.0.1"
		}
		s.wantAll(s.dial(0, "addresses"), want)
	},
	"linger": func(s *served) { s.wantReset(s.dial(0, "linger")) },
	"deadline": func(s *served) {
		c := s.dial(0, "deadline")
		s.want(c, "late\n")
		s.write(c, "this\n")
		s.wantAll(c, "then this")
	},
	"half": func(s *served) {
		c := s.dial(0, "half")
		s.write(c, "0123456789")
		c.CloseWrite()
		s.wantAll(c, "10 bytes")
	},
	"broken": func(s *served) {
		c := s.dial(0, "broken")
		s.want(c, "go\n")
		c.SetLinger(0)
		c.Close()
		s.wantLine("broken")
	},
	"options": func(s *served) { s.wantAll(s.dial(0, "options"), "set") },
	"info":    func(s *served) { s.wantAll(s.dial(0, "info"), "established") },
	"vector":  func(s *served) { s.wantAll(s.dial(0, "vector"), "one two "+strings.Repeat("three ", 1000)) },
	"tree":    func(s *served) { s.wantAll(s.dial(0, "tree"), strings.Repeat("from a file ", 20000)) },
	"file": func(s *served) {
		c := s.dial(0, "file")
		s.want(c, "by the file ")
		s.write(c, "and back")
		c.CloseWrite()
		s.wantAll(c, "and back")
	},
	"twice": func(s *served) {
		c := s.dial(0, "twice")
		for range 2 {
			s.want(c, "next\n")
			s.write(c, "line\n")
		}
		s.wantAll(c, "both")
	},
	"forward": func(s *served) {
		c := s.dial(0, "forward")
		text := strings.Repeat("0123456789", 50_000)
		go func() {
			io.WriteString(c, text)
			c.CloseWrite()
		}()
		s.wantAll(c, text)
	},
	"pass": func(s *served) { s.wantAll(s.dial(0, "pass"), "passed") },
	"blocking": func(s *served) {
		c := s.dial(0, "blocking")
		s.want(c, "go\n")
		s.write(c, "ab")
		time.Sleep(10 * time.Millisecond)
		s.write(c, "cd")
		time.Sleep(50 * time.Millisecond)
		s.wantAll(c, string(make([]byte, 8<<20)))
	},
	"level": func(s *served) { s.rounds(s.dial(0, "level")) },
	"edge":  func(s *served) { s.rounds(s.dial(0, "edge")) },
	"poll": func(s *served) {
		c := s.dial(0, "poll")
		s.want(c, "go\n")
		s.write(c, "x")
		s.want(c, "ready")
	},
	"peek": func(s *served) {
		c := s.dial(0, "peek")
		s.write(c, "0123456789")
		s.wantAll(c, "0123456789")
	},
	"urgent": func(s *served) {
		if s.where == relayed {
			return // a relay does not support urgent data
		}
		c := s.dial(0, "urgent")
		s.shout(c, "!")
		s.want(c, "?")
	},
	"mark": func(s *served) {
		if s.where == relayed {
			return
		}
		c := s.dial(0, "mark")
		s.want(c, "go\n")
		s.write(c, "ab")
		s.shout(c, "!")
		s.write(c, "cd")
		s.wantAll(c, "abcd")
	},
	"rally": func(s *served) {
		var several sync.WaitGroup
		for range 4 {
			c := s.dial(0, "echo")
			several.Go(func() {
				for i := range 500 {
					text := "0123456789"[:1+i%10]
					s.write(c, text)
					s.want(c, text)
				}
			})
		}
		several.Wait()
	},
	"queued": func(s *served) {
		c := s.dial(0, "queued")
		s.write(c, "01234")
		s.wantAll(c, "5")
	},
	"table":   func(s *served) { s.wantAll(s.dial(0, "table"), "there") },
	"leave":   func(s *served) { s.wantAll(s.dial(0, "leave"), string(make([]byte, 1<<20))) },
	"closing": func(s *served) { s.wantAll(s.dial(0, "closing"), "") },
	"second":  (*served).second,
	"dual": func(s *served) {
		asked := s.dial(0, "dual")
		s.want(asked, "listens\n")
		want := "10.0.2.15 8002 10.0.2.2"
		if s.where == onLinux {
			want = "127.0.0.1 " + s.ports[2] + " 127.0.0.1"
		}
		s.wantAll(s.dial(2, ""), want)
		s.wantAll(asked, "") // the program no longer listens on this port
	},
	"alone": func(s *served) {
		if s.where == onLinux {
			return // on Linux, ports are not published
		}
		asked := s.dial(0, "alone")
		s.want(asked, "listens\n")
		s.wantAll(s.dial(2, ""), "fd6c:6f61:6d00::15 8002 fd6c:6f61:6d00::2")
		s.wantAll(asked, "")
	},
	"deferred": func(s *served) {
		asked := s.dial(0, "deferred")
		s.want(asked, "listens\n")
		c := s.dial(2, "")
		s.write(asked, "connected\n")
		s.want(asked, "nobody\n")
		s.write(c, "hello")
		s.want(c, "hello")
		c.CloseWrite()
		s.wantAll(c, "")
		s.wantAll(asked, "")
	},
	"nobody": func(s *served) {
		// nothing listens on the first port; the second listens only on the program's loopback interface
		for _, port := range []int{2, 3} {
			c, err := net.Dial("tcp", "127.0.0.1:"+s.ports[port])
			if s.where == onLinux {
				if port == 2 && !errors.Is(err, syscall.ECONNREFUSED) {
					s.t.Errorf("a port without a listener: %v", err)
				}
				continue
			}
			if err == nil {
				c.SetDeadline(time.Now().Add(handPatience))
				s.wantReset(c)
				c.Close()
			} else if !errors.Is(err, syscall.ECONNRESET) {
				s.t.Error(err)
			}
		}
	},
}

// shout sends urgent data (MSG_OOB) from the peer to the program. The peer itself receives urgent data in
// line (SO_OOBINLINE).
func (s *served) shout(c *net.TCPConn, text string) {
	s.t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		s.t.Fatal(err)
	}
	raw.Control(func(fd uintptr) {
		syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_OOBINLINE, 1)
		_, err = syscall.SendmsgN(int(fd), []byte(text), nil, nil, syscall.MSG_OOB)
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// rounds acts as the client of a program that waits with an epoll set.
func (s *served) rounds(c *net.TCPConn) {
	s.t.Helper()
	for range 3 {
		s.want(c, "go\n")
		s.write(c, "12345")
	}
	s.want(c, "end\n")
	c.CloseWrite()
	s.wantAll(c, "")
}

// second makes the program listen on the second of its ports, too.
func (s *served) second() {
	asked := s.dial(0, "second")
	s.want(asked, "listens\n")
	s.wantAll(s.dial(1, ""), "accepted")
	s.want(asked, "accepted\n")
	waiting := s.dial(1, "")
	time.Sleep(50 * time.Millisecond) // the connection is usually in the accept queue by then
	s.write(asked, "close\n")
	s.want(asked, "closed\n")
	s.wantReset(waiting)
}

// A program cannot use the socket of an ended handed-over connection to connect to the host.
func TestPublishedReachesNothing(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := serve(t, handedOver)
	c := s.dial(0, "reach")
	s.write(c, strconv.Itoa(l.Addr().(*net.TCPAddr).Port)+"\n")
	s.want(c, "go\n")
	c.SetLinger(0)
	c.Close()
	s.wantLine("reached nothing")
	l.(*net.TCPListener).SetDeadline(time.Now().Add(100 * time.Millisecond))
	if _, err := l.Accept(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the host is reached: %v", err)
	}
}

// However the program ends, its connections end too, and no process or file of it is left behind.
func TestPublishedEnds(t *testing.T) {
	for _, how := range []string{"exit", "crash", "the command is killed"} {
		t.Run(how, func(t *testing.T) {
			s := serve(t, handedOver)
			kept := s.dial(0, "never")
			s.want(kept, "kept")
			s.write(kept, "this is not read")
			guest := childOf(t, childOf(t, s.cmd.Process.Pid))
			switch how {
			case "exit":
				s.wantAll(s.dial(0, "exit"), string(make([]byte, 1<<20)))
			case "crash":
				s.dial(0, "crash")
			default:
				s.cmd.Process.Kill()
			}
			if _, err := kept.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("a connection of a program that has ended: %v", err)
			}
			s.cmd.Wait()
			for end := time.Now().Add(handPatience); ; time.Sleep(10 * time.Millisecond) {
				if _, err := os.Stat(fmt.Sprintf("/proc/%d", guest)); err != nil {
					break
				}
				if time.Now().After(end) {
					t.Fatal("the program is left")
				}
			}
			if c, err := net.Dial("tcp", "127.0.0.1:"+s.ports[0]); err == nil {
				c.Close()
				t.Error("the port is still there")
			}
		})
	}
}

// After a connection has ended, neither the program nor the loam command has a descriptor of it.
func TestPublishedDescriptors(t *testing.T) {
	s := serve(t, handedOver)
	guest := childOf(t, childOf(t, s.cmd.Process.Pid))
	round := func() {
		for _, deed := range []string{"addresses", "info", "linger", "pass", "closing"} {
			io.ReadAll(s.dial(0, deed))
		}
		c := s.dial(0, "poll") // the program opens a second descriptor for polling
		s.want(c, "go\n")
		s.write(c, "x")
		s.want(c, "ready")
		c.Close()
		if refused, err := net.Dial("tcp", "127.0.0.1:"+s.ports[2]); err == nil {
			io.ReadAll(refused)
			refused.Close()
		}
	}
	round()
	before := [2]int{descriptorsOf(t, guest), descriptorsOf(t, s.cmd.Process.Pid)}
	for range 50 {
		round()
	}
	var after [2]int
	for end := time.Now().Add(handPatience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		after = [2]int{descriptorsOf(t, guest), descriptorsOf(t, s.cmd.Process.Pid)}
		if after[0] <= before[0] && after[1] <= before[1] {
			return
		}
	}
	t.Errorf("descriptors of the program and the command: %v, and %v after 350 connections", before, after)
}

func descriptorsOf(t *testing.T, pid int) int {
	t.Helper()
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

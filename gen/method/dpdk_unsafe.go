//go:build linux && dpdk

package method

// The method dpdk uses a poll mode driver of DPDK through cgo, in builds with the tag dpdk (make dpdk). It needs
// neither huge pages nor a device of its own, because it uses software drivers: by default net_af_xdp on the interface
// Config.Interface. Config.Interface may also be the name and the arguments of a virtual device, such as net_ring0 or
// net_tap0,iface=tap7.
//
// DPDK transfers bursts: arrays of pointers to its own buffers. A cgo call costs about as much as copying a frame. So a
// burst takes only two calls: one allocates the buffers, and one passes them to DPDK. Between the calls, Go code writes
// the frames. Counters.Left is the number of frames that DPDK counts as sent (opackets).
//
// net_af_xdp loads an XDP program of its own, which takes all frames of the queue away from the kernel, whether or not
// they match. The program is removed when the port is closed.
//
// Safety, for every use of unsafe in this file: buffers and bursts are C memory, which does not move. Go code uses a
// slot only between the calls get and put.

/*
#cgo pkg-config: libdpdk
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#define BURST 256

// A burst is the unit of transfer between Go and DPDK.
struct burst {
	struct rte_mbuf *buf[BURST];
	void *at[BURST];
	uint16_t length[BURST];
};

// start initialises DPDK on one processor, then restores the thread's processor affinity.
static int start(void) {
	char *args[] = {"loam", "--no-huge", "--no-shconf", "-m", "256", "--no-pci", "--no-telemetry", "-l", "0", "--log-level=4"};
	cpu_set_t before;
	pthread_getaffinity_np(pthread_self(), sizeof before, &before);
	int n = rte_eal_init(sizeof args / sizeof args[0], args);
	pthread_setaffinity_np(pthread_self(), sizeof before, &before);
	return n < 0 ? -rte_errno : 0;
}

// open_port creates a virtual device with one transmit and one receive queue.
static int open_port(const char *name, const char *args, int size, int number, uint16_t *port, struct rte_mempool **pool) {
	char label[32];
	struct rte_eth_conf conf;
	int err = rte_eal_hotplug_add("vdev", name, args);
	if (err != 0)
		return err;
	if ((err = rte_eth_dev_get_port_by_name(name, port)) != 0)
		return err;
	memset(&conf, 0, sizeof conf);
	for (int i = 0; i < 2; i++) { // to send from, and to receive into
		snprintf(label, sizeof label, "loam%d.%d", number, i);
		pool[i] = rte_pktmbuf_pool_create(label, 8191, 0, 0, size + RTE_PKTMBUF_HEADROOM, SOCKET_ID_ANY);
		if (pool[i] == NULL)
			return -rte_errno;
	}
	if ((err = rte_eth_dev_configure(*port, 1, 1, &conf)) != 0 ||
	    (err = rte_eth_rx_queue_setup(*port, 0, 2048, SOCKET_ID_ANY, NULL, pool[1])) != 0 ||
	    (err = rte_eth_tx_queue_setup(*port, 0, 1024, SOCKET_ID_ANY, NULL)) != 0)
		return err;
	return rte_eth_dev_start(*port);
}

static void close_port(const char *name, uint16_t port, struct rte_mempool **pool) {
	rte_eth_dev_stop(port);
	rte_eth_dev_close(port);
	rte_eal_hotplug_remove("vdev", name);
	for (int i = 0; i < 2; i++)
		rte_mempool_free(pool[i]);
}

// get allocates n buffers for frames.
static int get(struct rte_mempool *pool, struct burst *b, int n) {
	if (rte_pktmbuf_alloc_bulk(pool, b->buf, n) != 0)
		return -1;
	for (int i = 0; i < n; i++)
		b->at[i] = rte_pktmbuf_mtod(b->buf[i], void *);
	return 0;
}

// put hands over the frames from first to n and returns how many were accepted.
static int put(uint16_t port, struct burst *b, int first, int n) {
	for (int i = first; i < n; i++)
		b->buf[i]->data_len = b->buf[i]->pkt_len = b->length[i];
	return rte_eth_tx_burst(port, 0, b->buf + first, n - first);
}

static void drop(struct burst *b, int first, int n) {
	for (int i = first; i < n; i++)
		rte_pktmbuf_free(b->buf[i]);
}

static int receive(uint16_t port, struct burst *b) {
	int n = rte_eth_rx_burst(port, 0, b->buf, BURST);
	for (int i = 0; i < n; i++) {
		b->at[i] = rte_pktmbuf_mtod(b->buf[i], void *);
		b->length[i] = b->buf[i]->data_len;
	}
	return n;
}
*/
import "C"

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"loam/link/match"
	"loam/wire"
)

func init() {
	methods = append(methods, Method{"dpdk", "a poll mode driver of DPDK, by default net_af_xdp", Frame, DefaultBatch, openDPDK, listenDPDK})
}

// dpdkPort is a virtual device of DPDK. A sender and a receiver may share it.
type dpdkPort struct {
	name  string
	port  C.uint16_t
	pools [2]*C.struct_rte_mempool
	users int
}

var dpdk = struct {
	sync.Mutex // guards the fields below
	start      func() error
	ports      map[string]*dpdkPort
	number     int
}{ports: map[string]*dpdkPort{}, start: sync.OnceValue(func() error {
	if err := C.start(); err != 0 {
		return fmt.Errorf("DPDK: %w: see what it printed", unix.Errno(-err))
	}
	return nil
})}

// virtual returns the name and the arguments of the virtual device that c selects.
func virtual(c Config) (name, args string) {
	if strings.HasPrefix(c.Interface, "net_") {
		name, args, _ = strings.Cut(c.Interface, ",")
		return name, args
	}
	return fmt.Sprintf("net_af_xdp_%s_%d", c.Interface, c.Queue), fmt.Sprintf("iface=%s,start_queue=%d", c.Interface, c.Queue)
}

// takeDPDK returns the port for c and increments its number of users. It initialises DPDK and opens the port if
// necessary.
func takeDPDK(c Config) (*dpdkPort, error) {
	dpdk.Lock()
	defer dpdk.Unlock()
	if !strings.HasPrefix(c.Interface, "net_") {
		if _, err := interfaceIndex(c.Interface); err != nil {
			return nil, err
		}
	}
	if err := dpdk.start(); err != nil {
		return nil, err
	}
	name, args := virtual(c)
	if p := dpdk.ports[name]; p != nil {
		p.users++
		return p, nil
	}
	p := &dpdkPort{name: name, users: 1}
	cName, cArgs := C.CString(name), C.CString(args)
	defer C.free(unsafe.Pointer(cName))
	defer C.free(unsafe.Pointer(cArgs))
	dpdk.number++
	if err := C.open_port(cName, cArgs, C.int(max(c.Size, 2048)), C.int(dpdk.number), &p.port, &p.pools[0]); err != 0 {
		return nil, fmt.Errorf("%s: %w: DPDK cannot open it: see what it printed", c.Interface, unix.Errno(-err))
	}
	dpdk.ports[name] = p
	return p, nil
}

// leave decrements the port's number of users. The last user closes the port.
func (p *dpdkPort) leave() {
	dpdk.Lock()
	defer dpdk.Unlock()
	if p.users--; p.users > 0 {
		return
	}
	delete(dpdk.ports, p.name)
	name := C.CString(p.name)
	defer C.free(unsafe.Pointer(name))
	C.close_port(name, p.port, &p.pools[0])
}

func newBurst() *C.struct_burst {
	return (*C.struct_burst)(C.calloc(1, C.sizeof_struct_burst))
}

// slot returns the first size bytes of buffer i of a burst.
func slot(b *C.struct_burst, i, size int) []byte {
	return unsafe.Slice((*byte)(b.at[i]), size)
}

// dpdkSender implements Sender.
type dpdkSender struct {
	counters
	port  *dpdkPort
	burst *C.struct_burst
	size  int
}

func openDPDK(c Config) (Sender, error) {
	c = c.WithDefaults()
	p, err := takeDPDK(c)
	if err != nil {
		return nil, err
	}
	return &dpdkSender{port: p, burst: newBurst(), size: c.Size}, nil
}

// Layer implements Sender.
func (s *dpdkSender) Layer() Layer { return Frame }

var errNoBuffer = errors.New("dpdk: no frame could leave for a second: is the interface up?")

// Send implements Sender.
func (s *dpdkSender) Send(n int, fill func(slot []byte) int) (sent int, err error) {
	for end := time.Now().Add(s.patience()); sent < n; {
		want := min(n-sent, C.BURST)
		if C.get(s.port.pools[0], s.burst, C.int(want)) != 0 {
			s.noBuffers.Add(1)
			if time.Now().After(end) {
				return sent, errNoBuffer
			}
			C.put(s.port.port, s.burst, 0, 0) // makes the driver free the buffers of frames that it has sent
			continue
		}
		filled, bytes := 0, 0
		for ; filled < want; filled++ {
			length := fill(slot(s.burst, filled, s.size))
			if length == 0 {
				break
			}
			s.burst.length[filled] = C.uint16_t(length)
			bytes += length
		}
		C.drop(s.burst, C.int(filled), C.int(want))
		gone, err := s.push(filled)
		s.took(gone, bytes, 1)
		sent += gone
		if err != nil || filled < want {
			return sent, err
		}
	}
	return sent, nil
}

// push sends the first n frames of the burst, and waits while DPDK accepts none.
func (s *dpdkSender) push(n int) (gone int, err error) {
	for end := time.Now().Add(s.patience()); gone < n; {
		k := int(C.put(s.port.port, s.burst, C.int(gone), C.int(n)))
		gone += k
		if k > 0 {
			continue
		}
		s.busy.Add(1)
		if time.Now().After(end) {
			C.drop(s.burst, C.int(gone), C.int(n))
			return gone, errNoBuffer
		}
	}
	return gone, nil
}

// Counters implements Sender.
func (s *dpdkSender) Counters() Counters {
	c := s.counters.Counters()
	var stats C.struct_rte_eth_stats
	if C.rte_eth_stats_get(s.port.port, &stats) == 0 {
		c.Left = uint64(stats.opackets)
	}
	return c
}

// Flush implements Sender.
func (s *dpdkSender) Flush(timeout time.Duration) error {
	for end := time.Now().Add(timeout); ; time.Sleep(20 * time.Microsecond) {
		C.put(s.port.port, s.burst, 0, 0)
		if c := s.Counters(); c.Left >= c.Handed {
			return nil
		}
		if time.Now().After(end) {
			return ErrTimeout
		}
	}
}

// Close implements Sender.
func (s *dpdkSender) Close() error {
	C.free(unsafe.Pointer(s.burst))
	s.port.leave()
	return nil
}

// dpdkReceiver implements Receiver.
type dpdkReceiver struct {
	port  *dpdkPort
	burst *C.struct_burst
	rules []match.Rule
	drops atomic.Uint64 // value of the driver's counter at the last call of Drops
}

func listenDPDK(c Config) (Receiver, error) {
	c = c.WithDefaults()
	p, err := takeDPDK(c)
	if err != nil {
		return nil, err
	}
	if c.Promiscuous {
		C.rte_eth_promiscuous_enable(p.port)
	}
	return &dpdkReceiver{port: p, burst: newBurst(), rules: c.Match}, nil
}

// Receive implements Receiver. It polls, since a poll mode driver has no notification.
func (r *dpdkReceiver) Receive(timeout time.Duration, got func(frame []byte, at int64)) (count int, err error) {
	for end := time.Now().Add(timeout); ; time.Sleep(10 * time.Microsecond) {
		n := int(C.receive(r.port.port, r.burst))
		for i := range n {
			frame := slot(r.burst, i, int(r.burst.length[i]))
			if len(frame) >= wire.EthernetLen && match.Any(r.rules, frame) {
				got(frame, 0)
				count++
			}
		}
		C.drop(r.burst, 0, C.int(n))
		if count > 0 || !time.Now().Before(end) {
			return count, nil
		}
	}
}

// Drops implements Receiver.
func (r *dpdkReceiver) Drops() uint64 {
	var stats C.struct_rte_eth_stats
	if C.rte_eth_stats_get(r.port.port, &stats) == 0 {
		r.drops.Store(uint64(stats.imissed + stats.rx_nombuf))
	}
	return r.drops.Load()
}

// Close implements Receiver.
func (r *dpdkReceiver) Close() error {
	r.Drops()
	C.free(unsafe.Pointer(r.burst))
	r.port.leave()
	return nil
}

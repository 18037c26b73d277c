package subject

import (
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/rawfile"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/pipe"
	"gvisor.dev/gvisor/pkg/tcpip/link/stopfd"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"loam/link"
)

// Links that gVisor lacks. Its stack can leave segmentation to the link ("host GSO"). Of its links,
// only fdbased offers that, and only on sockets; a tap is a character device. To compare stacks rather
// than links on a tap, we give gVisor a link of our own, vnetLink, that uses everything a tap offers.
// gsoPipe does the same for a pipe.

const gsoMaxSize = 65535

// gsoPipe is gVisor's pipe without any segmentation: frames of up to 64 kB cross unchanged.
type gsoPipe struct{ *pipe.Endpoint }

func (gsoPipe) GSOMaxSize() uint32               { return gsoMaxSize }
func (gsoPipe) SupportedGSO() stack.SupportedGSO { return stack.HostGSOSupported }
func (gsoPipe) Capabilities() stack.LinkEndpointCapabilities {
	return stack.CapabilityTXChecksumOffload | stack.CapabilityRXChecksumOffload
}

// vnetLink is a tap whose frames carry a virtio-net header: TCP sends and receives frames of up to 64
// kB with unfinished checksums. One goroutine reads. Writers write directly, one frame per call.
type vnetLink struct {
	fd      int
	stop    stopfd.StopFD
	running sync.WaitGroup

	mu         sync.RWMutex
	dispatcher stack.NetworkDispatcher
	mac        tcpip.LinkAddress
}

func newVnetLink(fd int, mac tcpip.LinkAddress) *vnetLink {
	return &vnetLink{fd: fd, mac: mac}
}

func (l *vnetLink) Attach(d stack.NetworkDispatcher) {
	l.mu.Lock()
	l.dispatcher = d
	l.mu.Unlock()
	if d == nil {
		l.stop.Stop()
		l.running.Wait()
		return
	}
	stop, err := stopfd.New()
	if err != nil {
		panic(fmt.Sprintf("subject: eventfd: %v", err))
	}
	l.stop = stop
	l.running.Go(func() { l.loop(d) })
}

// loop reads frames until the link is detached. A frame first fills a small view, which is enough for
// nearly all frames that are not coalesced, and then a large one. A large view that was not used is
// kept for the next frame.
func (l *vnetLink) loop(d stack.NetworkDispatcher) {
	const small = 2048
	var hdr [vnetHdrLen]byte
	var large *buffer.View
	for {
		if large == nil {
			large = buffer.NewViewSize(1 << 16)
		}
		first := buffer.NewViewSize(small)
		iov := []unix.Iovec{{Base: &hdr[0]}, {Base: first.BasePtr()}, {Base: large.BasePtr()}}
		iov[0].SetLen(len(hdr))
		iov[1].SetLen(first.Size())
		iov[2].SetLen(large.Size())
		n, errno := rawfile.BlockingReadvUntilStopped(l.stop.EFD, l.fd, iov)
		if errno != 0 || n <= vnetHdrLen {
			return
		}
		n -= vnetHdrLen
		var frame buffer.Buffer
		first.CapLength(min(n, small))
		frame.Append(first)
		if n > small {
			large.CapLength(n - small)
			frame.Append(large)
			large = nil
		}
		l.deliver(d, frame)
	}
}

func (l *vnetLink) deliver(d stack.NetworkDispatcher, frame buffer.Buffer) {
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: frame})
	defer pkt.DecRef()
	if !l.ParseHeader(pkt) {
		return
	}
	pkt.RXChecksumValidated = true
	d.DeliverNetworkPacket(pkt.NetworkProtocolNumber, pkt)
}

func (l *vnetLink) WritePackets(pkts stack.PacketBufferList) (int, tcpip.Error) {
	var hdr [vnetHdrLen]byte
	var space [8]unix.Iovec
	for i, pkt := range pkts.AsSlice() {
		putVnetHdr(hdr[:], pkt)
		iov := rawfile.AppendIovecFromBytes(space[:0], hdr[:], rawfile.MaxIovs)
		for _, b := range pkt.AsSlices() {
			iov = rawfile.AppendIovecFromBytes(iov, b, rawfile.MaxIovs)
		}
		if errno := rawfile.NonBlockingWriteIovec(l.fd, iov); errno != 0 {
			return i, tcpip.TranslateErrno(errno)
		}
	}
	return pkts.Len(), nil
}

// vnetHdrLen is the size in bytes of the virtio-net header before each frame.
const vnetHdrLen = link.VirtioHeaderLen

// putVnetHdr writes the header with the work that is left to do for pkt.
func putVnetHdr(b []byte, pkt *stack.PacketBuffer) {
	gso := pkt.GSOOptions
	var todo link.Offload
	if gso.Type == stack.GSOTCPv4 {
		todo = link.Offload{
			NeedsChecksum: gso.NeedsCsum,
			CsumStart:     ethernetHdrSize + gso.L3HdrLen,
			CsumOffset:    gso.CsumOffset,
			HeaderLen:     uint16(pkt.HeaderSize()),
		}
		if pkt.Data().Size() > int(gso.MSS) {
			todo.GSO, todo.GSOSize = link.GSOTCP4, gso.MSS
		}
	}
	todo.Put(b)
}

const ethernetHdrSize = header.EthernetMinimumSize

func (l *vnetLink) AddHeader(pkt *stack.PacketBuffer) {
	eth := header.Ethernet(pkt.LinkHeader().Push(ethernetHdrSize))
	eth.Encode(&header.EthernetFields{
		SrcAddr: pkt.EgressRoute.LocalLinkAddress,
		DstAddr: pkt.EgressRoute.RemoteLinkAddress,
		Type:    pkt.NetworkProtocolNumber,
	})
}

func (l *vnetLink) ParseHeader(pkt *stack.PacketBuffer) bool {
	b, ok := pkt.LinkHeader().Consume(ethernetHdrSize)
	if !ok {
		return false
	}
	pkt.NetworkProtocolNumber = header.Ethernet(b).Type()
	return true
}

func (l *vnetLink) MTU() uint32                             { return MTU }
func (l *vnetLink) SetMTU(uint32)                           {}
func (l *vnetLink) MaxHeaderLength() uint16                 { return ethernetHdrSize }
func (l *vnetLink) LinkAddress() tcpip.LinkAddress          { return l.mac }
func (l *vnetLink) SetLinkAddress(tcpip.LinkAddress)        {}
func (l *vnetLink) Wait()                                   { l.running.Wait() }
func (l *vnetLink) ARPHardwareType() header.ARPHardwareType { return header.ARPHardwareEther }
func (l *vnetLink) Close()                                  {}
func (l *vnetLink) SetOnCloseAction(func())                 {}
func (l *vnetLink) GSOMaxSize() uint32                      { return gsoMaxSize }
func (l *vnetLink) SupportedGSO() stack.SupportedGSO        { return stack.HostGSOSupported }
func (l *vnetLink) Capabilities() stack.LinkEndpointCapabilities {
	return stack.CapabilityRXChecksumOffload | stack.CapabilityResolutionRequired
}

func (l *vnetLink) IsAttached() bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.dispatcher != nil
}

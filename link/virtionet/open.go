package virtionet

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"

	"loam/driver"
	"loam/driver/virtio"
	"loam/link"
	"loam/wire"
)

// Feature bits of a network card (virtio 1.2 section 5.1.3).
const (
	featureCSUM      virtio.Features = 1 << 0
	featureGuestCSUM virtio.Features = 1 << 1
	featureMTU       virtio.Features = 1 << 3
	featureMAC       virtio.Features = 1 << 5
	featureGuestTSO4 virtio.Features = 1 << 7
	featureGuestTSO6 virtio.Features = 1 << 8
	featureGuestECN  virtio.Features = 1 << 9
	featureHostTSO4  virtio.Features = 1 << 11
	featureHostTSO6  virtio.Features = 1 << 12
	featureHostECN   virtio.Features = 1 << 13
	featureMerge     virtio.Features = 1 << 15 // VIRTIO_NET_F_MRG_RXBUF: a frame may use several buffers
	featureStatus    virtio.Features = 1 << 16
	featureControl   virtio.Features = 1 << 17 // VIRTIO_NET_F_CTRL_VQ: the card has a control queue
	featureMQ        virtio.Features = 1 << 22
	featureGuestUSO4 virtio.Features = 1 << 54
	featureGuestUSO6 virtio.Features = 1 << 55
	featureHostUSO   virtio.Features = 1 << 56
)

// Offsets in the configuration (virtio 1.2 section 5.1.4).
const (
	configMAC    = 0
	configStatus = 6
	configPairs  = 8
	configMTU    = 10

	statusLinkUp = 1
)

// headerLen is the size of struct virtio_net_hdr with num_buffers, which precedes every frame on a
// card of version 1.
const headerLen = link.VirtioHeaderLen + 2

// mostMTU is the largest MTU for which a packet fits into a frame with two VLAN tags and all
// headers.
const mostMTU = link.MaxFrame - wire.EthernetLen - 2*wire.VLANTagLen - headerLen

// Config describes how to open a card. The zero value is valid.
type Config struct {
	Name   string   // name of the device; default "eth0"
	Queues int      // most pairs of queues to use; default 1, at most 64
	Depth  int      // frames in each direction of a pair; default 256, a power of two, at most 1024
	MTU    int      // MTU if the card does not report one; default 1500
	MAC    wire.MAC // address if the card does not report one; default random
	// NoOffloads makes all frames in both directions have finished checksums, and no frame be
	// longer than the MTU allows.
	NoOffloads bool
	Log        *slog.Logger // receives messages for an operator; default none
}

func (c *Config) setDefaults() error {
	if c.Name == "" {
		c.Name = "eth0"
	}
	for _, d := range []struct {
		value *int
		or    int
		most  int
	}{{&c.Queues, 1, 64}, {&c.Depth, 256, 1024}, {&c.MTU, 1500, mostMTU}} {
		if *d.value == 0 {
			*d.value = d.or
		}
		if *d.value < 1 || *d.value > d.most {
			return fmt.Errorf("virtionet: %d is not from 1 to %d", *d.value, d.most)
		}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Depth&(c.Depth-1) != 0 || c.Depth < virtio.MinRing {
		return fmt.Errorf("virtionet: %d is not a power of two", c.Depth)
	}
	return nil
}

// Open negotiates features, creates the queues and starts the card. Closing the returned device
// also closes the card.
func Open(card *virtio.Device, c Config) (*Device, error) {
	if err := c.setDefaults(); err != nil {
		return nil, err
	}
	if card.Kind() != virtio.Net {
		return nil, fmt.Errorf("%v: %w of network", card, virtio.ErrNotVirtio)
	}
	if err := card.NegotiateBy(0, c.wants); err != nil {
		return nil, err
	}
	d := &Device{card: card, machine: card.Machine(), log: c.Log, done: make(chan struct{})}
	pairs, err := d.describe(&c)
	if err != nil {
		card.Close()
		return nil, err
	}
	if err := d.setUp(&c, pairs); err != nil {
		return nil, err
	}
	if err := card.Start(); err != nil {
		d.giveBack()
		return nil, err
	}
	d.readStatus()
	for _, p := range d.pairs {
		p.receiver.start()
		d.crew.Start(p.sender.loop)
	}
	d.crew.Start(d.loop)
	d.crew.Start(d.watch)
	if err := d.usePairs(); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// wants returns the features to use among those that the card offers.
func (c *Config) wants(offers virtio.Features) virtio.Features {
	wants := virtio.Indirect | virtio.EventIndex | featureMTU | featureMAC | featureStatus | featureMerge
	if c.Queues > 1 && offers.Has(featureControl|featureMQ) {
		wants |= featureControl | featureMQ
	}
	if c.NoOffloads {
		return wants
	}
	if offers.Has(featureCSUM) { // without CSUM, the other features about sending are not allowed
		wants |= featureCSUM | featureHostTSO4 | featureHostTSO6 | featureHostECN | featureHostUSO
	}
	if offers.Has(featureGuestCSUM) {
		wants |= featureGuestCSUM
		if offers.Has(featureMerge) { // without merged buffers, every receive buffer would need 64 KiB
			wants |= featureGuestTSO4 | featureGuestTSO6 | featureGuestECN | featureGuestUSO4 | featureGuestUSO6
		}
	}
	return wants
}

// describe reads the configuration, and returns the number of pairs that the card has.
func (d *Device) describe(c *Config) (pairs int, err error) {
	d.merges, d.ecn = d.card.Has(featureMerge), d.card.Has(featureHostECN)
	d.info = link.Info{Name: c.Name, Medium: link.Ethernet, MAC: c.MAC, MTU: c.MTU}
	for feature, offload := range map[virtio.Features]link.Offloads{
		featureCSUM: link.OffloadChecksum, featureHostTSO4: link.OffloadTSO4,
		featureHostTSO6: link.OffloadTSO6, featureHostUSO: link.OffloadUSO,
	} {
		if d.card.Has(feature) {
			d.info.Offloads |= offload
		}
	}
	pairs = 1
	read := func(size int, f func(virtio.Config)) {
		if err == nil {
			err = d.card.ReadConfig(size, f)
		}
	}
	if d.card.Has(featureMAC) {
		read(configMAC+6, func(c virtio.Config) {
			for i := range d.info.MAC {
				d.info.MAC[i] = c.U8(configMAC + i)
			}
		})
	} else if d.info.MAC == (wire.MAC{}) {
		d.info.MAC = randomMAC()
	}
	if d.card.Has(featureMQ) {
		read(configPairs+2, func(c virtio.Config) { pairs = int(c.U16(configPairs)) })
	}
	if d.card.Has(featureMTU) {
		read(configMTU+2, func(c virtio.Config) { d.info.MTU = int(c.U16(configMTU)) })
	}
	const leastMTU = 68 // in bytes, from section 5.1.4.1 of the virtio specification
	switch {
	case err != nil:
		return 0, err
	case d.info.MTU < leastMTU || pairs < 1 || pairs > 0x8000:
		return 0, fmt.Errorf("%v: %w: MTU %d, %d pairs of queues", d.card, virtio.ErrLayout, d.info.MTU, pairs)
	}
	d.info.MTU = min(d.info.MTU, mostMTU)
	return pairs, nil
}

// randomMAC returns a random, locally administered unicast address.
func randomMAC() (m wire.MAC) {
	rand.Read(m[:])
	m[0] = m[0]&^1 | 2
	return m
}

// setUp creates the queues. Queue 2i receives and queue 2i+1 sends for pair i. The control queue
// follows all queues that the card has (virtio 1.2 section 5.1.2).
func (d *Device) setUp(c *Config, has int) error {
	var specs []virtio.QueueSpec
	use := min(c.Queues, has)
	for i := range use {
		specs = append(specs, virtio.QueueSpec{Index: 2 * i, Size: c.Depth}, virtio.QueueSpec{Index: 2*i + 1, Size: c.Depth, Indirect: true})
	}
	if d.card.Has(featureControl) {
		specs = append(specs, virtio.QueueSpec{Index: 2 * has, Size: controlDepth})
	}
	queues, err := d.card.SetUp(specs...)
	if err != nil {
		return err
	}
	d.direct = d.reachesHeap()
	for i := range use {
		p := &pair{device: d}
		d.pairs = append(d.pairs, p)
		d.queues = append(d.queues, p)
		err = errors.Join(err, p.receiver.setUp(p, queues[2*i]), p.sender.setUp(p, queues[2*i+1]))
	}
	if err == nil && d.card.Has(featureControl) {
		d.control, err = newControl(d.machine, queues[2*use])
	}
	if err != nil {
		d.card.Close()
		d.giveBack()
		return fmt.Errorf("%v: %w", d.card, err)
	}
	return nil
}

// giveBack frees the memory that setUp allocated, for a card that was never started.
func (d *Device) giveBack() {
	for _, p := range d.pairs {
		p.receiver.free(d.machine)
		p.sender.free(d.machine)
	}
	d.control.free(d.machine)
}

// reachesHeap reports whether the machine's devices can reach frames on the Go heap.
func (d *Device) reachesHeap() bool {
	f := link.NewFrame(1)
	defer f.Free()
	var s [virtio.MaxSegments]driver.Segment
	_, ok := d.machine.Segments(f.Bytes(), s[:])
	return ok
}

// readStatus reads whether the cable is connected.
func (d *Device) readStatus() {
	up := true
	if d.card.Has(featureStatus) {
		err := d.card.ReadConfig(configStatus+2, func(c virtio.Config) { up = c.U16(configStatus)&statusLinkUp != 0 })
		if err != nil {
			return // the configuration is changing: another interrupt follows
		}
	}
	d.up.Store(up)
}

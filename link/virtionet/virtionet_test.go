package virtionet_test

import (
	"slices"
	"testing"

	"loam/driver/virtio/model"
	"loam/internal/race"
	"loam/link"
	"loam/link/linktest"
	"loam/link/virtionet"
)

// Features of a card: virtio 1.2 section 5.1.3.
const (
	csum, guestCSUM    = 1 << 0, 1 << 1
	mtu, mac           = 1 << 3, 1 << 5
	guestTSO, guestECN = 1<<7 | 1<<8, 1 << 9
	hostTSO, hostECN   = 1<<11 | 1<<12, 1 << 13
	merge, status      = 1 << 15, 1 << 16
	controlQueue, mq   = 1 << 17, 1 << 22
	uso                = 1<<54 | 1<<55 | 1<<56

	everything = csum | guestCSUM | mtu | mac | guestTSO | guestECN | hostTSO | hostECN | merge | status | controlQueue | mq | uso
)

// The wire between the cards does not segment. If a card does not merge receive buffers, its peer
// must send no long frames.

// card describes the cards of a test.
type card struct {
	features uint64
	pairs    int
	mtu      int
	plain    bool
	way      string
	options  []model.Option
	config   virtionet.Config
}

const eachVector = "PCI, a vector for each"

var cards = map[string]card{
	"everything":      {features: everything},
	"one vector":      {features: everything, way: "PCI, one vector"},
	"a line":          {features: everything, way: "PCI, a line"},
	"MMIO":            {features: everything, way: "MMIO"},
	"plain rings":     {features: everything, plain: true},
	"nothing":         {plain: true, way: "MMIO"},
	"checksums":       {features: mac | csum | guestCSUM},
	"no merging":      {features: everything &^ (merge | hostTSO | uso)},
	"copied":          {features: everything, options: []model.Option{model.Heapless}},
	"copied, plain":   {features: mac | csum, plain: true, options: []model.Option{model.Heapless}},
	"small pages":     {features: everything, options: []model.Option{model.Pages(1 << 13)}},
	"three pairs":     {features: everything, pairs: 3, config: virtionet.Config{Queues: 3}},
	"two of four":     {features: everything, pairs: 4, config: virtionet.Config{Queues: 2}},
	"jumbo":           {features: everything, mtu: 9000},
	"jumbo, unmerged": {features: everything &^ (merge | hostTSO | uso), mtu: 9000, way: "MMIO"},
	"short rings":     {features: everything, config: virtionet.Config{Depth: 64}},
	"no offloads":     {features: everything, config: virtionet.Config{NoOffloads: true}},
}

// open opens two connected cards.
func (c card) open(t testing.TB) (a, b *virtionet.Device, w *model.Wire) {
	t.Helper()
	c.pairs, c.mtu = max(1, c.pairs), max(1500, c.mtu)
	if c.way == "" {
		c.way = eachVector
	}
	w = model.NewWire(c.features,
		model.NetConfig([6]byte{2, 0, 0, 0, 0, 1}, uint16(c.pairs), uint16(c.mtu)),
		model.NetConfig([6]byte{2, 0, 0, 0, 0, 2}, uint16(c.pairs), uint16(c.mtu)), c.pairs)
	var ends []*virtionet.Device
	for _, d := range []*model.Device{w.A, w.B} {
		d.Plain = c.plain
		m := model.New(c.options...)
		v, err := model.Ways[c.way](m, d, model.NetQueues(c.pairs))
		if err != nil {
			t.Fatal(err)
		}
		end, err := virtionet.Open(v, c.config)
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, end)
		t.Cleanup(func() {
			if err := end.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
			if n := m.Held(); n != 0 {
				t.Errorf("%d bytes of memory are kept", n)
			}
		})
	}
	return ends[0], ends[1], w
}

// device is a card that closes its simulated hardware when it is closed, because the suite counts goroutines before
// the test's cleanups run.
type device struct {
	*virtionet.Device
	model *model.Device
}

func (d device) Close() error {
	err := d.Device.Close()
	d.model.Close()
	return err
}

// raced lists the kinds of cards that are tested with the race detector. All cards would take a minute with it.
var raced = []string{"everything", "MMIO", "copied", "two of four"}

func TestDevice(t *testing.T) {
	for name, c := range cards {
		if race.Enabled && !slices.Contains(raced, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			linktest.Run(t, func(t testing.TB) (link.Device, link.Device) {
				a, b, w := c.open(t)
				return device{a, w.A}, device{b, w.B}
			}, linktest.PeerUnseen)
		})
	}
}

// BenchmarkDevice measures the driver together with the simulated card, which takes most of the time.
func BenchmarkDevice(b *testing.B) {
	for _, name := range []string{"everything", "copied"} {
		b.Run(name, func(b *testing.B) {
			linktest.Bench(b, func(t testing.TB) (link.Device, link.Device) {
				x, y, w := cards[name].open(t)
				return device{x, w.A}, device{y, w.B}
			}, linktest.PeerUnseen)
		})
	}
}

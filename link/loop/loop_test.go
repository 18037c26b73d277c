package loop_test

import (
	"testing"

	"loam/link"
	"loam/link/linktest"
	"loam/link/loop"
)

func maker(c loop.Config) linktest.Make {
	return func(testing.TB) (a, b link.Device) {
		d := loop.New(c)
		return d, d
	}
}

func TestConformance(t *testing.T) {
	for name, config := range map[string]loop.Config{
		"default": {},
		"small":   {MTU: 1500, Queues: 2, Depth: 8},
	} {
		t.Run(name, func(t *testing.T) { linktest.Run(t, maker(config)) })
	}
}

func TestDefaults(t *testing.T) {
	d := loop.New(loop.Config{MTU: 1 << 20})
	defer d.Close()
	info := d.Info()
	if info.Name != "lo" || info.Medium != link.IP || info.MTU != 65536 || !info.MAC.IsZero() {
		t.Errorf("Info = %+v", info)
	}
}

func Benchmark(b *testing.B) {
	linktest.Bench(b, maker(loop.Config{}))
}

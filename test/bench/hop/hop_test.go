package hop

import (
	"fmt"
	"testing"
)

func TestEveryShapeDeliversEveryPacket(t *testing.T) {
	const n = 1003 // number of packets, not a multiple of any batch size
	for _, s := range Shapes() {
		if got := s.Run(Segment(), n); got != n*PayloadLen {
			t.Errorf("%s, batch %d: %d bytes at the top, want %d", s.Name, s.Batch, got, n*PayloadLen)
		}
	}
}

func BenchmarkShape(b *testing.B) {
	packet := Segment()
	for _, s := range Shapes() {
		b.Run(fmt.Sprintf("%s/%d", s.Name, s.Batch), func(b *testing.B) {
			b.ReportAllocs()
			s.Run(packet, b.N)
		})
	}
}

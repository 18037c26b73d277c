package path

import (
	"strings"
	"testing"
	"time"
)

func TestBoundLeavesOutHeadersAndLoss(t *testing.T) {
	p := Path{Rate: 100e6, RTT: 40 * time.Millisecond, Loss: 0.01}
	if b := p.Bound() / 1e6; b < 94 || b > 95 {
		t.Errorf("bound of %v is %.1f Mbit/s", p, b)
	}
}

func TestTable(t *testing.T) {
	var b strings.Builder
	Write(&b, []Row{{Path: Path{100e6, 40 * time.Millisecond, 0.01}, Algorithm: "bbr", Rates: [3]float64{90e6, 88e6, 81e6}}}, "a machine")
	if want := "| 100 | 40ms | 1.0 % | bbr | 94.7 | 90.0 | 88.0 | 81.0 | 0.90 |"; !strings.Contains(b.String(), want) {
		t.Errorf("%s\nwant %s", b.String(), want)
	}
}

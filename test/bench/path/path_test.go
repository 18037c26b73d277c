package path

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestBoundLeavesOutHeadersAndLoss(t *testing.T) {
	for _, c := range []struct {
		path Path
		want string
	}{
		{Path{Rate: 100e6, Loss: 0.01}, "94.7"},
		{Path{Rate: 100e6, IPv6: true}, "94.3"},
		{Path{Rate: 100e6, MTU: 9000}, "99.3"},
	} {
		if got := fmt.Sprintf("%.1f", c.path.Bound()/1e6); got != c.want {
			t.Errorf("bound of %v is %s Mbit/s, want %s", c.path, got, c.want)
		}
	}
}

func TestTable(t *testing.T) {
	var b strings.Builder
	Write(&b, []Row{{Path: Path{Rate: 100e6, RTT: 40 * time.Millisecond, Loss: 0.01}, Algorithm: "bbr", Rates: [4]float64{90e6, 88e6, 81e6, 89e6}}}, "a machine")
	if want := "| IPv4 | 100 | 40ms | 1.0 % | bbr | 94.7 | 90.0 | 88.0 | 81.0 | 0.90 | 89.0 |"; !strings.Contains(b.String(), want) {
		t.Errorf("%s\nwant %s", b.String(), want)
	}
}

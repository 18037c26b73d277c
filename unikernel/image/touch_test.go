//go:build !race

package image

import (
	"strconv"
	"strings"
	"testing"

	"loam/boot"
)

// BenchmarkTouch reports the cost of the page faults when a program first touches memory, one page at a
// time.
func BenchmarkTouch(b *testing.B) {
	const mib = 512
	image := bootable(b)
	var total float64
	for b.Loop() {
		config := boot.Config{Args: []string{"guest", "touch", strconv.Itoa(mib)}}
		out, _ := machine(b, image, config, "-machine", "q35", "-m", "1G")
		nanos, err := strconv.ParseFloat(strings.TrimSpace(out), 64)
		if err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		total += nanos
	}
	b.ReportMetric(total/float64(b.N)/1e6, "ms/touch")
	b.ReportMetric(total/float64(b.N)/(mib<<8), "ns/page")
}

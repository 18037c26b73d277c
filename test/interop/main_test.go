//go:build linux

package interop

import (
	"testing"

	"loam/internal/netns"
	"loam/link"
)

func TestMain(m *testing.M) {
	link.Track(true)
	netns.Main(m)
}

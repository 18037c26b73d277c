package complaint

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
)

// A warning or error is one line that starts with "loam: "; other records are ignored.
func TestHandler(t *testing.T) {
	var said strings.Builder
	log := slog.New(Handler{To: &said})
	log.Info("up")
	log.Error("link failed", "interface", "eth0", "error", errors.New("virtio: nonsense"))
	log.With("interface", "eth1").Warn("the address has been lost")
	const want = "loam: link failed: interface eth0, error virtio: nonsense\nloam: the address has been lost: interface eth1\n"
	if said.String() != want {
		t.Errorf("said %q, want %q", &said, want)
	}
}

//go:build linux

package virtionet_test

import (
	"testing"

	"loam/internal/netns"
)

func TestMain(m *testing.M) { netns.Main(m) }

// Command memory uses as much memory as a small machine has.
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) > 1 {
		fmt.Println(overflow(1))
	}
	// The live heap is more than half of the free memory of a machine with 128 MiB. So a collector that waits until the
	// heap has doubled starts too late.
	var kept [][]byte
	for range 48 {
		kept = append(kept, filled())
	}
	for range 500 {
		kept[0] = filled()
	}
	fmt.Println("ok", len(kept))
}

func filled() []byte {
	b := make([]byte, 1<<20)
	for i := range b {
		b[i] = 1
	}
	return b
}

func overflow(n int) int { return overflow(n+1) + 1 }

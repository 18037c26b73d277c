package account

import "runtime/metrics"

// KernelHeap returns the bytes of objects in the heap of the kernel, and of the objects that were reachable at the last garbage
// collection.
func KernelHeap() (all, live uint64) {
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(samples)
	all = samples[0].Value.Uint64()
	return all, min(all, samples[1].Value.Uint64())
}

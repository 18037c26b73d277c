package setting

import (
	"math"

	"loam/abi/linux"
	"loam/task/sysv"
)

// mostObjects is the largest number of objects of a kind of System V's IPC (IPCMNI of Linux).
const mostObjects = 1 << 15

// SysV returns the settings of System V's IPC. with calls a function with the limits.
func SysV(with func(func(*sysv.Limits))) map[string]Setting {
	long := func(field func(*sysv.Limits) *uint64) Setting {
		return Long(math.MaxUint64, func() (n uint64) {
			with(func(l *sysv.Limits) { n = *field(l) })
			return n
		}, func(n uint64) { with(func(l *sysv.Limits) { *field(l) = n }) })
	}
	integer := func(most int64, field func(*sysv.Limits) *int) Setting {
		return Integer(0, most, func() (n int64) {
			with(func(l *sysv.Limits) { n = int64(*field(l)) })
			return n
		}, func(n int64) { with(func(l *sysv.Limits) { *field(l) = int(n) }) })
	}
	return map[string]Setting{
		"sys/kernel/shmmax": long(func(l *sysv.Limits) *uint64 { return &l.SegmentSize }),
		"sys/kernel/shmall": long(func(l *sysv.Limits) *uint64 { return &l.SegmentPages }),
		"sys/kernel/shmmni": integer(mostObjects, func(l *sysv.Limits) *int { return &l.Segments }),
		"sys/kernel/msgmax": integer(math.MaxInt32, func(l *sysv.Limits) *int { return &l.Message }),
		"sys/kernel/msgmnb": integer(math.MaxInt32, func(l *sysv.Limits) *int { return &l.QueueBytes }),
		"sys/kernel/msgmni": integer(mostObjects, func(l *sysv.Limits) *int { return &l.Queues }),
		"sys/kernel/sem":    semaphores(with),
	}
}

// semaphores is the setting of the limits of semaphores. As on Linux, a write that fails may change the first three.
func semaphores(with func(func(*sysv.Limits))) Setting {
	fields := func(l *sysv.Limits) []*int { return []*int{&l.InSet, &l.Semaphores, &l.Operations, &l.Sets} }
	return Integers(math.MinInt32, math.MaxInt32, func() (numbers []int64) {
		with(func(l *sysv.Limits) {
			for _, f := range fields(l) {
				numbers = append(numbers, int64(*f))
			}
		})
		return numbers
	}, func(numbers []int64, err error) error {
		with(func(l *sysv.Limits) {
			sets := l.Sets
			for i, f := range fields(l) {
				*f = int(numbers[i])
			}
			if l.Sets < 0 || l.Sets > mostObjects {
				err = linux.ERANGE
			}
			if err != nil {
				l.Sets = sets
			}
		})
		return err
	})
}

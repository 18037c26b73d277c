package machine

import (
	"loam/abi/linux"
	"loam/arch/amd64"
)

// None is a Thread that cannot run in ring 3. It stands for a program in ring 0, and for a process whose program is not
// loaded yet.
type None struct{}

func (None) Run() Reason                   { return Interrupted }
func (None) Spent() (user, system int64)   { return 0, 0 }
func (None) Registers() *amd64.Frame       { return &amd64.Frame{} }
func (None) Restore()                      {}
func (None) FaultAddress() uint64          { return 0 }
func (None) Kick()                         {}
func (None) Settle()                       {}
func (None) Watch(bool)                    {}
func (None) CPU() int                      { return 0 }
func (None) Bind(uint64)                   {}
func (None) Rest()                         {}
func (None) Bases() (fs, gs uint64)        { return 0, 0 }
func (None) SetBases(uint64, uint64) error { return linux.EPERM }
func (None) VectorSize() int               { return 0 }
func (None) Vectors([]byte)                {}
func (None) SetVectors([]byte)             {}
func (None) VectorComponents() uint64      { return 0 }
func (None) SetDebug([4]uint64, uint64)    {}
func (None) DebugStatus() uint64           { return 0 }
func (None) Close()                        {}

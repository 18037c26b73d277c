package amd64

// MSREFER is the register of extended features: SDM volume 3, 2.2.1.
const MSREFER = 0xc000_0080

// SPDX-License-Identifier: Apache-2.0

package disk

import "testing"

func TestKindsHaveTheNamesThatPeopleKnow(t *testing.T) {
	t.Parallel()
	for magic, want := range map[uint32]string{0xef53: "ext4", 0x01021994: "tmpfs", 0x6969: "nfs", 0xff534d42: "smb", 0x794c7630: "overlay", 0x12345: "0x12345"} {
		if got := name(magic); got != want {
			t.Errorf("%#x is %q, want %q", magic, got, want)
		}
	}
}

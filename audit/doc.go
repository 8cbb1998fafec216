// SPDX-License-Identifier: Apache-2.0

// Package audit is the tamper-evident log: what was asked, what was answered, what became of it.
//
// The log is a directory of segments, one file per UTC day and size cap. A record is a leaf of its segment's Merkle tree; the
// record, its tree hashes and a checkpoint signed with the log's key are written in one transaction, so there is no state in
// which a record exists without its proof. Bodies (inputs, responses, reasons) lie beside the records and are bound by salted
// commitments: they can be taken away later without breaking a proof.
//
// Promises:
//
//   - Append returns a Receipt only after the record is on disk. Any other answer means that nothing may be allowed on its
//     account: the record may or may not be there.
//   - Sequence numbers start at 1 and grow by one. A hole is declared by a gap record, or it is a finding of Verify.
//   - After a commit whose outcome is unknown the log refuses everything until it has been reopened and read back; what was
//     found is written down as a daemon.commit-unknown record.
//   - Nothing is repaired in place. A damaged live segment is renamed with the suffix "~corrupt-TIME" and a new one begun.
//
// One process writes; it holds the lock of the directory. Log serves queries of that process, Reader serves them from the
// files alone when no process writes.
package audit

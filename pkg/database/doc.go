// Package database opens PostgreSQL or embedded SQLite behind one code path, and runs transactions that say what became of them.
//
// It is the only place that knows which of the two it is talking to. Everything above it relies on two portable statements,
// INSERT … ON CONFLICT (…) DO NOTHING and UPDATE … WHERE state = ? (or version), both with rows affected. Locks make things
// faster or more polite; they are never the argument for correctness.
//
// A transaction ([DB.InTx]) has one time ([Tx.Now], the database's clock), ends in one of the outcomes of errors.go, and is
// never canceled once COMMIT has been sent.
package database

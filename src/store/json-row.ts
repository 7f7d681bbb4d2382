/**
 * The value of a row that this program wrote as JSON. `what` names the database and the row. Throws where it is no JSON: then
 * bytes of the data file were overwritten, which the check of its pages (lmdb-check.ts) cannot see.
 */
export function readJsonRow(value: Uint8Array, what: string): unknown {
  try {
    return JSON.parse(Buffer.from(value).toString())
  } catch {
    throw new Error(`${what} was overwritten on the disk. See "A database is broken" in deploy/OPERATING.md`)
  }
}

/** Writes items into the tables of uploads, and prints the results. Its parent limits how large a file may be. */
import { createHash } from 'node:crypto'
import { idOfBytes } from '../../src/format/id.js'
import { writePatiently } from '../../src/store/patient-write.js'
import { openUploadTables, Uploads } from '../../src/upload/records/uploads.js'

const [path = '', count = ''] = process.argv.slice(2)
const uploads = new Uploads(openUploadTables(path))
const tell = (line: string): void => void process.stdout.write(`${line}\n`)
const say = { error: () => tell('waits'), info: () => tell('goes on') }
const place = { file: 1, offset: 0, sizeBytes: 10 }
const facts = { headerSize: 6, owner: 'o'.repeat(400), receivedMs: 1, deadlineHeight: 200, winc: '0', place }
const ids = Array.from({ length: Number(count) }, (_, at) =>
  idOfBytes(createHash('sha256').update(`${at}`).digest()),
)
for (const [at, id] of ids.entries()) {
  const accept = (): void => uploads.accept([{ ...facts, id, winc: String(at) }], () => undefined)
  if (!(await writePatiently(accept, new AbortController().signal, say))) tell('ended')
}
tell(`kept ${ids.filter((id, at) => uploads.find(id)?.winc === String(at)).length}`)
await uploads.environment.close()

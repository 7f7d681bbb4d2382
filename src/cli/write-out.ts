import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { finished } from 'node:stream/promises'

/** Writes pieces into a file, which appears when all of them are there; without a file to standard output. */
export async function writeOut(
  pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  output: string | undefined,
): Promise<void> {
  if (output === undefined) {
    for await (const piece of pieces) {
      if (!process.stdout.write(piece)) await once(process.stdout, 'drain')
    }
    return
  }
  const draft = `${output}.part`
  const file = createWriteStream(draft)
  try {
    for await (const piece of pieces) {
      if (!file.write(piece)) await once(file, 'drain')
    }
    file.end()
    await finished(file)
    await rename(draft, output)
  } catch (error) {
    file.destroy()
    await rm(draft, { force: true })
    throw error
  }
}

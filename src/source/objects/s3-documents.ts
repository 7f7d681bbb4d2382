import { bufferOf } from '../../format/buffer-of.js'
import { Gathered } from '../../format/gathered.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import type { UpstreamAnswer } from '../upstream/upstream-answer.js'

/** Bytes of a document at most: errors are short; a list of 1000 keys has some 400 KB. */
export const [errorMaxBytes, listMaxBytes] = [8192, 4 * 1024 * 1024] as const

/** All of a document; a refusal where it breaks off, or is longer. */
export async function gathered(answer: UpstreamAnswer, maxBytes: number): Promise<Buffer | Refusal> {
  const whole = new Gathered()
  for await (const piece of answer) {
    if (isRefusal(piece)) return piece
    whole.add(piece)
    if (whole.sizeBytes > maxBytes)
      return refuse('upstream', 'upstream', 'the object store sent too long a document')
  }
  return bufferOf(whole.bytes())
}

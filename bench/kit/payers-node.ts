import { Devnet } from '../../src/devnet/devnet.js'
import { type Payer, payerOf } from '../../test/devnet/posting.js'
import { emptyFolder } from './folders.js'

/** A node that mines when it is asked to, and somebody with winston on it. */
export async function payersNode(): Promise<{ readonly devnet: Devnet; readonly payer: Payer }> {
  const devnet = await Devnet.start({
    host: '127.0.0.1',
    port: 0,
    blockMs: 0,
    dataPath: emptyFolder('devnet'),
  })
  return { devnet, payer: await payerOf(devnet) }
}

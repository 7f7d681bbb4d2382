import { parentPort, workerData } from 'node:worker_threads'
import { type Claim, claimFolder } from '../src/actor/claim.js'
import { systemClock } from '../src/actor/clock.js'
import { keepHeartbeat } from '../src/actor/heartbeats.js'
import { createLog } from '../src/actor/log.js'
import { Devnet } from '../src/devnet/devnet.js'
import type { DevnetOptions } from '../src/devnet/options.js'
import { makeFolder } from '../src/store/folder.js'

if (parentPort === null) throw new Error('this file is a thread, not a program')
const port = parentPort
const { options } = workerData as { options: DevnetOptions }
// The chain is the thread's own: `sluice devnet` and a program with an embedded node may be told of the same folder.
const claim = options.replayPath === undefined ? await claimed(options.dataPath) : undefined
const devnet = await Devnet.start(options, systemClock, createLog('info', 'devnet'))
port.on('message', (word: { stop?: true }) => {
  if (word.stop !== true) return
  // Nothing else keeps the thread alive once the node is down and this port closed.
  void devnet
    .stop()
    .then(() => claim?.release())
    .then(() => port.close())
})
keepHeartbeat()
port.postMessage({ ready: { url: devnet.url } })

function claimed(folder: string): Promise<Claim> {
  makeFolder(folder)
  return claimFolder(folder)
}

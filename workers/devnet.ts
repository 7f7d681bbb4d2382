import { parentPort, workerData } from 'node:worker_threads'
import { keepHeartbeat } from '../src/actor/heartbeats.js'
import { Devnet } from '../src/devnet/devnet.js'
import type { DevnetOptions } from '../src/devnet/options.js'

if (parentPort === null) throw new Error('this file is a thread, not a program')
const port = parentPort
const devnet = await Devnet.start((workerData as { options: DevnetOptions }).options)
port.on('message', (word: { stop?: true }) => {
  if (word.stop !== true) return
  // Nothing else keeps the thread alive once the node is down and this port closed.
  void devnet.stop().then(() => port.close())
})
keepHeartbeat()
port.postMessage({ ready: { url: devnet.url } })

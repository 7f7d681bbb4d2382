import { sendsBlockNews } from '../actor/block-news.js'
import { claimFolder } from '../actor/claim.js'
import { systemClock } from '../actor/clock.js'
import { createLog } from '../actor/log.js'
import type { OpenThread } from '../actor/run-thread.js'
import { Devnet } from '../devnet/devnet.js'
import type { DevnetOptions } from '../devnet/devnet-options.js'
import { makeFolder } from '../store/folder.js'

/** The embedded base-layer node. */
export async function openDevnet({ options }: { readonly options: DevnetOptions }): Promise<OpenThread> {
  const { replayPath, dataPath } = options
  if (replayPath === undefined) makeFolder(dataPath)
  // The chain is the thread's own: `sluice devnet` and a program with an embedded node may be given the same folder.
  const claim = replayPath === undefined ? await claimFolder(dataPath) : undefined
  const news = sendsBlockNews()
  const devnet = await Devnet.start(options, systemClock, createLog('info', 'devnet'), news.send)
  return {
    ready: { url: devnet.url },
    // Nothing else keeps the thread alive once the node is down.
    endsItself: true,
    async close() {
      await devnet.stop()
      news.close()
      await claim?.release()
    },
  }
}

import { BroadcastChannel } from 'node:worker_threads'

const channelName = 'sluice.blocks'

/** What waits for news of blocks, or sends them. */
export interface BlockNews {
  close(): void
}

/**
 * A sender of news to all threads of this program: the chain of the embedded node has changed. So they need not look for blocks
 * again and again, and they see a block at once.
 */
export function sendsBlockNews(): BlockNews & { send(): void } {
  const channel = new BroadcastChannel(channelName)
  return { send: () => channel.postMessage(0), close: () => channel.close() }
}

/** Calls `act` at each news of a sender in this program. They prove nothing: who hears them looks at the node. */
export function hearsBlockNews(act: () => void): BlockNews {
  // The types of Node leave out that it can be left waiting.
  const channel = new BroadcastChannel(channelName) as BroadcastChannel & { unref(): void }
  channel.onmessage = () => act()
  channel.unref()
  return { close: () => channel.close() }
}

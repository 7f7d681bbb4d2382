import type { IndexRequest } from '../../src/catalog/index-protocol.js'
import { anyStep, History } from '../catalog/history.js'
import { earlyFlush, openHouse } from '../catalog/index-model.js'
import { fc } from '../property.js'

/** An index with a made-up chain, part of it in segments, and the model of it. */
export async function openChainHouse(steps: number) {
  const house = openHouse(undefined, undefined, earlyFlush)
  const history = new History()
  const play = async (count: number): Promise<void> => {
    for (const step of fc.sample(anyStep, count)) {
      // The chain only grows, so that enough of it is stable.
      if (step.kind === 'unwind') continue
      const requests: readonly IndexRequest[] = history.play(step)
      await house.apply(requests)
    }
  }
  await play(steps)
  return { ...house, model: history.model, play }
}

/** One listener for each signal, however many calls have it: Node.js warns of more than ten. */

const ALL = new WeakMap<AbortSignal, Aborts>()

class Aborts {
  readonly works = new Set<() => void>()
  readonly listener = () => {
    for (const work of [...this.works]) work()
  }
}

/** Works when a signal is aborted, unless it is cancelled before. */
export function onAbort(signal: AbortSignal, work: () => void): () => void {
  const aborts = ALL.get(signal) ?? new Aborts()
  if (aborts.works.size === 0) {
    ALL.set(signal, aborts)
    signal.addEventListener('abort', aborts.listener)
  }
  aborts.works.add(work)
  return () => {
    if (aborts.works.delete(work) && aborts.works.size === 0) signal.removeEventListener('abort', aborts.listener)
  }
}

// A Worker for pages that are opened as files, where browsers start none: the script of the search runs in a
// hidden frame. By this file's name the theme knows that it need not load another from a network.
if (location.protocol === "file:") {
  window.Worker = window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.frame = frame.contentWindow;
      this.frame.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = this.frame.document.createElement("script");
      script.src = url;
      this.ready = new Promise((loaded) => { script.onload = loaded; });
      this.frame.document.body.append(script);
    }

    postMessage(data) {
      this.ready.then(() => this.frame.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}
